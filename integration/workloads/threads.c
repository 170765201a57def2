// SPDX-License-Identifier: Apache-2.0
/* Many threads with a stream and an array each, in step with one another. */
#include "gpu.h"
#include "report.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static pthread_barrier_t begin, end;
static _Atomic uint64_t total;
static uint64_t words;

static void *work(void *argument)
{
	struct array array;
	CUstream stream;

	CHECK(cuda.CtxSetCurrent(gpu.ctx));
	CHECK(cuda.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	array_make(&array, words, (uint64_t)(uintptr_t)argument, stream);
	for (;;) {
		pthread_barrier_wait(&begin);
		array_step(&array);
		array_sum(&array);
		atomic_fetch_xor(&total, array_verify(&array));
		pthread_barrier_wait(&end);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct options options = { .interval = 100, .mib = 1, .threads = 64 };
	uint64_t step = 0;
	pthread_t thread;

	options_parse(&options, argc, argv);
	words = (options.mib << 20) / sizeof(uint64_t);
	gpu_open();
	pthread_barrier_init(&begin, NULL, options.threads + 1);
	pthread_barrier_init(&end, NULL, options.threads + 1);
	for (unsigned i = 0; i < options.threads; i++) {
		if (pthread_create(&thread, NULL, work, (void *)(uintptr_t)(i + 1)))
			return 8;
	}
	report_ready(&options);
	do {
		atomic_store(&total, 0);
		pthread_barrier_wait(&begin);
		pthread_barrier_wait(&end);
	} while (report_step(&options, ++step, atomic_load(&total)));
	exit(0);
}
