// SPDX-License-Identifier: Apache-2.0
/* Errors the way runc gives them: one record in the file of --log, one line on stderr, status 1. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "front.h"

static void escape(char *out, size_t size, const char *text)
{
	for (size_t used = 0; *text && used + 8 < size; text++) {
		const char *plain = *text == '"' || *text == '\\' ? "\\%c" : "%c";

		used += (size_t)sprintf(out + used, (unsigned char)*text < 0x20 ? "\\u%04x" : plain, *text);
	}
}

void fail(const struct command *c, const char *format, ...)
{
	char message[4096], escaped[8192] = "", when[32] = "", record[8400];
	time_t now = time(NULL);
	va_list args;
	int fd;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	dprintf(STDERR_FILENO, "%s\n", message);
	escape(escaped, sizeof(escaped), message);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
	fd = c->log ? open(c->log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644) : -1;
	snprintf(record, sizeof(record),
		 c->log_format && !strcmp(c->log_format, "json")
			 ? "{\"level\":\"error\",\"msg\":\"%1$s\",\"time\":\"%2$s\"}\n"
			 : "time=\"%2$s\" level=error msg=\"%1$s\"\n",
		 escaped, when);
	(void)!write(fd, record, strlen(record));
	exit(1);
}
