// SPDX-License-Identifier: Apache-2.0
/* contract [--library FILE] [--expected FILE] [GROUP...]
 *
 * Prints a line for each check. With --expected the lines are compared with those of a file too;
 * differences go to stderr, and the exit status is 1 if there are any. */
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
	while (fgets(line, sizeof(line), lines)) {
		fputs(line, stdout);
		compare_line(line);
	}
	fclose(lines);
	waitpid(pid, &status, 0);
	if (WIFSIGNALED(status)) {
		snprintf(line, sizeof(line), "%s.ended: signal %d\n", group->name, WTERMSIG(status));
		fputs(line, stdout);
		compare_line(line);
	} else if (WEXITSTATUS(status) == 77) {
		exit(77);
	}
	compare_group(group->name);
}

static bool wanted(const struct group *group, int argc, char **argv, int first)
{
	for (int i = first; i < argc; i++) {
		if (strcmp(argv[i], group->name) == 0)
			return true;
	}
	return first == argc;
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
	for (; first + 1 < argc && strncmp(argv[first], "--", 2) == 0; first += 2) {
		if (strcmp(argv[first], "--library") == 0)
			contract_library = argv[first + 1];
		else if (strcmp(argv[first], "--expected") == 0)
			compare_open(argv[first + 1]);
		else
			break;
	}
	if (first < argc && argv[first][0] == '-') {
		fprintf(stderr, "usage: %s [--library FILE] [--expected FILE] [GROUP...]\n", argv[0]);
		return 2;
	}
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
		if (wanted(&groups[i], argc, argv, first))
			start_group(&groups[i]);
	}
	return compare_result();
}
