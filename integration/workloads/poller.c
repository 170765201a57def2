// SPDX-License-Identifier: Apache-2.0
/* Threads that poll events and streams in a tight loop while others launch: polling calls are
 * what dies if a thread runs while the driver has taken the device away.
 *
 * --mode event|stream|both|sync says what they call. */
#include "gpu.h"
#include "report.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static CUstream stream;
static CUevent event;
static bool events, streams, sync_context;
static atomic_ulong polls;
static atomic_bool ending;

static void expect(CUresult result, const char *call)
{
	if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY)
		cuda_failed(result, call);
}

static void *poll_on(void *unused)
{
	CHECK(cuda.CtxSetCurrent(gpu.ctx));
	while (!atomic_load_explicit(&ending, memory_order_relaxed)) {
		if (events)
			expect(cuda.EventQuery(event), "cuEventQuery");
		if (streams)
			expect(cuda.StreamQuery(stream), "cuStreamQuery");
		if (sync_context)
			expect(cuda.CtxSynchronize(), "cuCtxSynchronize");
		atomic_fetch_add_explicit(&polls, 1, memory_order_relaxed);
	}
	return unused;
}

static void choose(const char *mode)
{
	events = strcmp(mode, "event") == 0 || strcmp(mode, "both") == 0;
	streams = strcmp(mode, "stream") == 0 || strcmp(mode, "both") == 0;
	sync_context = strcmp(mode, "sync") == 0;
}

int main(int argc, char **argv)
{
	struct options options = { .interval = 20, .mib = 4, .threads = 4, .mode = "both" };
	struct array array;
	pthread_t *threads;

	options_parse(&options, argc, argv);
	threads = calloc(options.threads, sizeof(*threads));
	if (!threads)
		return 8;
	choose(options.mode);
	gpu_open();
	CHECK(cuda.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuda.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
	array_make(&array, (options.mib << 20) / sizeof(uint64_t), 2, stream);
	CHECK(cuda.EventRecord(event, stream));
	for (unsigned i = 0; i < options.threads; i++) {
		if (pthread_create(&threads[i], NULL, poll_on, NULL))
			return 8;
	}
	report_ready(&options);
	do {
		array_step(&array);
		CHECK(cuda.EventRecord(event, stream));
		array_sum(&array);
	} while (report_step(&options, array.model.steps, array_verify(&array)));
	/* The driver is gone once main has returned. */
	atomic_store(&ending, true);
	for (unsigned i = 0; i < options.threads; i++)
		pthread_join(threads[i], NULL);
	return atomic_load(&polls) ? 0 : 8;
}
