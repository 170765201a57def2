/* SPDX-License-Identifier: Apache-2.0
 *
 * For the tests of the interception library: they lie in $OUT/tests and find everything from there;
 * one that needs another environment starts itself again, with "probe" and a name as arguments.
 */
#ifndef CHECK_H
#define CHECK_H

#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *check_case = "";

#define CHECK(condition, ...)                                                                         \
	do {                                                                                          \
		if (!(condition)) {                                                                   \
			fprintf(stderr, "%s:%d: %s: %s", __FILE__, __LINE__, check_case, #condition); \
			fprintf(stderr, " -- " __VA_ARGS__);                                          \
			fputc('\n', stderr);                                                          \
			exit(1);                                                                      \
		}                                                                                     \
	} while (0)

/* $OUT/<format>, to be kept for the life of the test. */
__attribute__((format(printf, 1, 2), unused)) static char *out(const char *format, ...)
{
	static char root[PATH_MAX];
	char rest[PATH_MAX], *path;
	va_list arguments;

	if (!root[0]) {
		CHECK(readlink("/proc/self/exe", root, sizeof(root) - 1) > 0, "no /proc");
		*strrchr(root, '/') = '\0';
		*strrchr(root, '/') = '\0';
	}
	va_start(arguments, format);
	vsnprintf(rest, sizeof(rest), format, arguments);
	va_end(arguments);
	CHECK(asprintf(&path, "%s/%s", root, rest) > 0, "no memory");
	return path;
}

/* Run this program again to probe `argument`, with these changes of the environment ("NAME=value", "NAME" to
 * unset, NULL at the end); its status as a shell would tell it. */
__attribute__((unused)) static int start(const char *argument, ...)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		va_list changes;
		char *change;

		va_start(changes, argument);
		while ((change = va_arg(changes, char *)))
			putenv(change);
		va_end(changes);
		execl("/proc/self/exe", "probe", "probe", argument, NULL);
		_exit(127);
	}
	CHECK(waitpid(child, &status, 0) == child, "no child");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#endif
