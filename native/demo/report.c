// SPDX-License-Identifier: Apache-2.0
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void usage(const char *program)
{
	fprintf(stderr,
		"usage: %s [--mib N] [--interval MS] [--steps N] [--gaps] [--output FILE]\n"
		"       [--threads N] [--count N] [--mode NAME]\n",
		program);
	exit(2);
}

static uint64_t number(const char *program, const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 10);

	if (!*text || *end)
		usage(program);
	return n;
}

void options_parse(struct options *options, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *name = argv[i], *value = argv[i + 1];

		if (strcmp(name, "--gaps") == 0) {
			options->gaps = true;
			continue;
		}
		if (!value)
			usage(argv[0]);
		if (strcmp(name, "--output") == 0)
			options->output = value;
		else if (strcmp(name, "--mode") == 0)
			options->mode = value;
		else if (strcmp(name, "--interval") == 0)
			options->interval = (unsigned)number(argv[0], value);
		else if (strcmp(name, "--mib") == 0)
			options->mib = number(argv[0], value);
		else if (strcmp(name, "--threads") == 0)
			options->threads = (unsigned)number(argv[0], value);
		else if (strcmp(name, "--count") == 0)
			options->count = (unsigned)number(argv[0], value);
		else if (strcmp(name, "--steps") == 0)
			options->steps = number(argv[0], value);
		else
			usage(argv[0]);
		i++;
	}
}

static volatile sig_atomic_t stopping;

static void stop(int signal)
{
	stopping = 1;
}

void report_ready(const struct options *options)
{
	struct sigaction action = { .sa_handler = stop };

	/* A program that is process 1 of a container has no default for it. */
	sigaction(SIGTERM, &action, NULL);
	/* Whoever reads may go away; the program goes on. */
	signal(SIGPIPE, SIG_IGN);
	if (options->output && !freopen(options->output, "a", stdout)) {
		fprintf(stderr, "%s: %s\n", options->output, strerror(errno));
		exit(2);
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void print_gap(void)
{
	static double last, longest;
	double now = now_ms(), gap = last > 0 ? now - last : 0;

	longest = gap > longest ? gap : longest;
	last = now;
	printf(" gap %.1f ms longest %.1f ms at %.6f", gap, longest, now / 1e3);
}

/* A signal ends the pause. */
bool report_pause(unsigned ms)
{
	struct timespec interval = { ms / 1000, (long)(ms % 1000) * 1000000 };

	if (!stopping)
		nanosleep(&interval, NULL);
	return !stopping;
}

bool report_step(const struct options *options, uint64_t step, uint64_t sum)
{
	printf("step %" PRIu64 " sum %016" PRIx64, step, sum);
	if (options->gaps)
		print_gap();
	putchar('\n');
	if ((!options->steps || step < options->steps) && report_pause(options->interval))
		return true;
	printf("ended after %" PRIu64 " steps\n", step);
	fflush(stdout);
	return false;
}

void report_bad(uint64_t step, uint64_t got, uint64_t want)
{
	printf("BAD step %" PRIu64 " sum %016" PRIx64 " expected %016" PRIx64 "\n", step, got, want);
	fflush(stdout);
	_exit(9);
}
