// SPDX-License-Identifier: Apache-2.0
/* replaced --native FILE --library FILE [--print] [GROUP...]
 * replaced FOLDER     of a build: its software GPU, and that through its interception library
 *
 * Prints differences and their reasons; the exit status is 1 if one has no reason. */
#include "replaced.h"

#include "compare.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECONDS 60 /* before a group counts as hanging */

struct group {
	const char *name;
	void (*run)(void);
};

static const struct group groups[] = {
#define G(name) { #name, group_##name },
	GROUPS(G)
#undef G
};

static const struct group *running;
static void *library;
static bool print;

void *function(const char *name)
{
	return dlsym(library, name);
}

void value(const char *check, const char *format, ...)
{
	va_list arguments;

	printf("%s.%s: ", running->name, check);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
	fflush(stdout);
}

void code(const char *check, CUresult result)
{
	if (result == ABSENT)
		value(check, "absent");
	else
		value(check, "%d", (int)result);
}

void codes(CUresult result, const char *check, ...)
{
	va_list arguments;
	char text[128];

	va_start(arguments, check);
	vsnprintf(text, sizeof(text), check, arguments);
	va_end(arguments);
	code(text, result);
}

void yes(const char *check, bool condition)
{
	value(check, condition ? "yes" : "no");
}

void need(const char *what, CUresult result)
{
	if (!result)
		return;
	value("ended", "%.60s: %d", what, (int)result);
	exit(1);
}

/* Nothing of a group outlives it. */
static void run_group(const struct group *group, const char *file, int out)
{
	dup2(out, STDOUT_FILENO);
	close(out);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(SECONDS);
	running = group;
	library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "replaced: %s\n", dlerror());
		_exit(77);
	}
	group->run();
	value("ended", "well");
	_exit(0);
}

static void end_of(pid_t pid, const struct group *group, enum side side)
{
	char line[128];
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		exit(77);
	if (!WIFSIGNALED(status))
		return;
	snprintf(line, sizeof(line), "%s.ended: %s %d", group->name,
		 WTERMSIG(status) == SIGALRM ? "hangs," : "signal", WTERMSIG(status));
	compare_take(side, line);
}

static void start_group(const struct group *group, const char *file, enum side side)
{
	char line[512];
	int ends[2];
	FILE *lines;
	pid_t pid;

	fflush(NULL);
	if (pipe(ends) || (pid = fork()) < 0) {
		perror("replaced");
		exit(2);
	}
	if (pid == 0) {
		close(ends[0]);
		run_group(group, file, ends[1]);
	}
	close(ends[1]);
	lines = fdopen(ends[0], "r");
	while (lines && fgets(line, sizeof(line), lines)) {
		line[strcspn(line, "\n")] = '\0';
		if (print)
			printf("%s %s\n", side == NATIVE ? "native " : "library", line);
		compare_take(side, line);
	}
	fclose(lines);
	end_of(pid, group, side);
}

static char *inside(const char *folder, const char *file)
{
	char *path;

	if (asprintf(&path, "%s/%s", folder, file) < 0)
		abort();
	return path;
}

static bool wanted(const char *name, char **names)
{
	for (char **n = names; *n; n++) {
		if (strcmp(*n, name) == 0)
			return true;
	}
	return !*names;
}

static int usage(void)
{
	fputs("usage: replaced --native FILE --library FILE [--print] [GROUP...]\n"
	      "       replaced FOLDER\ngroups:",
	      stderr);
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
		fprintf(stderr, " %s", groups[i].name);
	fputc('\n', stderr);
	return 2;
}

int main(int argc, char **argv)
{
	const char *native = NULL, *ours = NULL;
	char **names = argv + 1;

	for (; *names && strncmp(*names, "--", 2) == 0; names++) {
		if (strcmp(*names, "--print") == 0)
			print = true;
		else if (strcmp(*names, "--native") == 0 && names[1])
			native = *++names;
		else if (strcmp(*names, "--library") == 0 && names[1])
			ours = *++names;
		else
			return usage();
	}
	if (!native && argc == 2) {
		native = inside(argv[1], "softgpu/libcuda.so.1");
		ours = inside(argv[1], "lib/libdiapause-cuda.so");
		names++;
	}
	if (!native || !ours)
		return usage();
	setenv("DIAPAUSE_REAL_LIBCUDA", native, 1);
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
		if (!wanted(groups[i].name, names))
			continue;
		start_group(&groups[i], native, NATIVE);
		start_group(&groups[i], ours, LIBRARY);
	}
	return compare_result();
}
