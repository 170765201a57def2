// SPDX-License-Identifier: Apache-2.0
/* contract [--library FILE] [GROUP...]
 * contract FOLDER
 *
 * Prints a line for each check and compares it with contract.expected; differences go to stderr, and
 * the exit status is 1 if there are any. With the folder of a build: its software GPU, and that
 * through its interception library; prints differences only. */
#include "contract.h"

#include "compare.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

const char *contract_library = "libcuda.so.1";

static const struct group groups[] = {
#define G(name, seconds) { #name, group_##name, seconds },
	GROUPS(G)
#undef G
};

static const struct group *running;
static bool quiet;

void value(const char *check, const char *format, ...)
{
	va_list arguments;

	printf("%s.%s: ", running ? running->name : "role", check);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
	fflush(stdout);
}

void code(const char *check, CUresult result)
{
	value(check, "%d", (int)result);
}

void yes(const char *check, bool condition)
{
	value(check, condition ? "yes" : "no");
}

void need(const char *what, CUresult result)
{
	if (!result)
		return;
	value("ended", "%s: %d", what, (int)result);
	exit(1);
}

double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

void sleep_ms(unsigned ms)
{
	struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

/* Nothing of a group outlives it: its helpers have PDEATHSIG set. */
static void run_group(const struct group *group, int out)
{
	dup2(out, STDOUT_FILENO);
	close(out);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(group->seconds);
	running = group;
	api_load(contract_library);
	group->run();
	value("ended", "well");
	fflush(stdout);
	_exit(0);
}

static void take(const char *line)
{
	if (!quiet)
		fputs(line, stdout);
	compare_line(line);
}

static void start_group(const struct group *group)
{
	char line[512];
	int ends[2], status;
	FILE *lines;
	pid_t pid;

	fflush(stdout);
	if (pipe(ends) || (pid = fork()) < 0) {
		perror("contract");
		exit(2);
	}
	if (pid == 0) {
		close(ends[0]);
		run_group(group, ends[1]);
	}
	close(ends[1]);
	lines = fdopen(ends[0], "r");
	while (fgets(line, sizeof(line), lines))
		take(line);
	fclose(lines);
	waitpid(pid, &status, 0);
	if (WIFSIGNALED(status)) {
		snprintf(line, sizeof(line), "%s.ended: signal %d\n", group->name, WTERMSIG(status));
		take(line);
	} else if (WEXITSTATUS(status) == 77) {
		exit(77);
	}
	compare_group(group->name);
}

static const struct group *find_group(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
		if (strcmp(name, groups[i].name) == 0)
			return &groups[i];
	}
	return NULL;
}

static void start_all(const char *what)
{
	compare_begin(what);
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
		start_group(&groups[i]);
}

static char *inside(const char *folder, const char *file)
{
	char *path;

	if (asprintf(&path, "%s/%s", folder, file) < 0)
		abort();
	return path;
}

static int of_build(const char *folder)
{
	char *software = inside(folder, "softgpu/libcuda.so.1");

	quiet = true;
	contract_library = software;
	start_all("software GPU");
	setenv("DIAPAUSE_REAL_LIBCUDA", software, 1);
	contract_library = inside(folder, "lib/libdiapause-cuda.so");
	start_all("interception library");
	return compare_result();
}

static int usage(void)
{
	fputs("usage: contract [--library FILE] [GROUP...]\n       contract FOLDER\ngroups:", stderr);
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
		fprintf(stderr, " %s", groups[i].name);
	fputc('\n', stderr);
	return 2;
}

static const struct {
	const char *name;
	int (*main)(int argc, char **argv);
} roles[] = {
	{ "helper", helper_main },
	{ "target", target_main },
	{ "creator", creator_main },
	{ "importer", importer_main },
};

int main(int argc, char **argv)
{
	int first = 1;

	for (size_t i = 0; i < ARRAY_SIZE(roles); i++) {
		if (argc >= 3 && strcmp(argv[1], roles[i].name) == 0) {
			contract_library = argv[2];
			return roles[i].main(argc - 3, argv + 3);
		}
	}
	if (argc == 2 && strchr(argv[1], '/'))
		return of_build(argv[1]);
	if (argc >= 3 && strcmp(argv[1], "--library") == 0) {
		contract_library = argv[2];
		first = 3;
	}
	for (int i = first; i < argc; i++) {
		if (!find_group(argv[i]))
			return usage();
	}
	if (first == argc)
		start_all("contract");
	compare_begin("contract");
	for (int i = first; i < argc; i++)
		start_group(find_group(argv[i]));
	return compare_result();
}
