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
	for (size_t used = 0; *text && used + 8 < size; text++)
		if (*text == '"' || *text == '\\')
			used += (size_t)sprintf(out + used, "\\%c", *text);
		else
			used += (size_t)sprintf(out + used, (unsigned char)*text < 0x20 ? "\\u%04x" : "%c",
						*text);
}

void fail(const struct command *c, const char *format, ...)
{
	char message[4096], escaped[8192] = "", when[32] = "";
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
	if (fd >= 0 && c->log_format && !strcmp(c->log_format, "json"))
		dprintf(fd, "{\"level\":\"error\",\"msg\":\"%s\",\"time\":\"%s\"}\n", escaped, when);
	else if (fd >= 0)
		dprintf(fd, "time=\"%s\" level=error msg=\"%s\"\n", when, escaped);
	exit(1);
}
