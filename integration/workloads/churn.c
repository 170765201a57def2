// SPDX-License-Identifier: Apache-2.0
/* Threads that allocate, use, check and free device memory all the time, from a few bytes to a few MiB, so
 * that a checkpoint meets them in every one of these calls. A step says that every thread got further. */
#include "gpu.h"
#include "report.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define KEPT 8 /* arrays of a thread */

static atomic_ulong *turns; /* of each thread */

static uint64_t next_random(uint64_t *state)
{
	*state = *state * KERNEL_MULTIPLIER + KERNEL_INCREMENT;
	return *state >> 33;
}

static uint64_t random_words(uint64_t *state)
{
	static const uint64_t limits[] = { 8, 64, 1000, 20000, 300000, 1000000 };

	return 1 + next_random(state) % limits[next_random(state) % 6];
}

static void *work(void *argument)
{
	uintptr_t number = (uintptr_t)argument;
	uint64_t state = 1 + number, seed = number << 32;
	struct array arrays[KEPT] = { 0 };
	CUstream stream;

	CHECK(cuda.CtxSetCurrent(gpu.ctx));
	CHECK(cuda.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (;;) {
		struct array *array = &arrays[next_random(&state) % KEPT];

		if (array->words) {
			array_sum(array);
			array_verify(array);
			array_free(array);
		}
		array_make(array, random_words(&state), ++seed, stream);
		array_step(array);
		atomic_fetch_add(&turns[number], 1);
	}
	return NULL;
}

static bool everyone_got_further(const unsigned long *before, unsigned threads)
{
	for (unsigned i = 0; i < threads; i++) {
		if (atomic_load(&turns[i]) == before[i])
			return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct options options = { .interval = 20, .threads = 4 };
	unsigned long *before;
	uint64_t step;
	pthread_t thread;

	options_parse(&options, argc, argv);
	turns = calloc(options.threads, sizeof(*turns));
	before = calloc(options.threads, sizeof(*before));
	if (!turns || !before)
		return 8;
	gpu_open();
	for (uintptr_t i = 0; i < options.threads; i++) {
		if (pthread_create(&thread, NULL, work, (void *)i))
			return 8;
	}
	report_ready(&options);
	for (step = 1; report_step(&options, step, step); step++) {
		while (!everyone_got_further(before, options.threads) && report_pause(1))
			;
		for (unsigned i = 0; i < options.threads; i++)
			before[i] = atomic_load(&turns[i]);
	}
	_exit(0);
}
