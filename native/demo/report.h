/* SPDX-License-Identifier: Apache-2.0
 *
 * Options and output that all these programs share: `ready`, then lines `step N sum HEX`, and
 * `ended after N steps` when --steps are done or SIGTERM came.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct options {
	unsigned interval;  /* --interval ms between steps */
	uint64_t mib;	    /* --mib of device memory */
	unsigned threads;   /* --threads */
	unsigned count;	    /* --count: of small things, where there are many */
	uint64_t steps;	    /* --steps: end after so many, 0: never */
	bool gaps;	    /* --gaps: time since the step before, and the longest, on CLOCK_MONOTONIC */
	const char *output; /* --output FILE: append there instead of printing */
	const char *mode;   /* --mode: what the program varies */
};

/* Exits with 2 on an unknown option. `options` holds the defaults. */
void options_parse(struct options *options, int argc, char **argv);

void report_ready(const struct options *options);
/* Prints, sleeps for the interval and says whether to go on. For the main thread. */
bool report_step(const struct options *options, uint64_t step, uint64_t sum);
/* Sleeps, and says whether to go on. */
bool report_pause(unsigned ms);
/* Prints BAD and exits with 9: from any thread. */
void report_bad(uint64_t step, uint64_t got, uint64_t want) __attribute__((noreturn));
