// SPDX-License-Identifier: Apache-2.0
/* A stream capture is in progress nearly all the time: each step begins one, rests in the middle of it, ends
 * it, makes a graph that can be launched, launches that a few times and checks the array. Another thread
 * allocates and frees meanwhile, as PyTorch does. */
#include "gpu.h"
#include "more.h"
#include "report.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define LAUNCHES 3

MORE(StreamBeginCapture, 10010, CUstream, CUstreamCaptureMode)
MORE(StreamEndCapture, 10000, CUstream, CUgraph *)
MORE(StreamIsCapturing, 10000, CUstream, CUstreamCaptureStatus *)
MORE(GraphInstantiateWithFlags, 11040, CUgraphExec *, CUgraph, unsigned long long)
MORE(GraphLaunch, 10000, CUgraphExec, CUstream)
MORE(GraphExecDestroy, 10000, CUgraphExec)
MORE(GraphDestroy, 10000, CUgraph)

static void *allocate(void *unused)
{
	CUdeviceptr memory;

	CHECK(cuda.CtxSetCurrent(gpu.ctx));
	for (;;) {
		CHECK(cuda.MemAlloc(&memory, 100000));
		report_pause(1);
		CHECK(cuda.MemFree(memory));
	}
	return unused;
}

static void still_capturing(CUstream stream)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

	CHECK(more_StreamIsCapturing(stream, &status));
	if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		cuda_failed(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "cuStreamIsCapturing");
}

/* The model is not stepped: nothing is done yet. */
static CUgraphExec capture(struct array *array, unsigned ms)
{
	struct model model = array->model;
	CUgraphExec exec;
	CUgraph graph;

	CHECK(more_StreamBeginCapture(array->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	array_step(array);
	report_pause(ms);
	still_capturing(array->stream);
	array_sum(array);
	CHECK(more_StreamEndCapture(array->stream, &graph));
	CHECK(more_GraphInstantiateWithFlags(&exec, graph, 0));
	CHECK(more_GraphDestroy(graph));
	array->model = model;
	return exec;
}

static void load(void)
{
	MORE_LOAD(StreamBeginCapture);
	MORE_LOAD(StreamEndCapture);
	MORE_LOAD(StreamIsCapturing);
	MORE_LOAD(GraphInstantiateWithFlags);
	MORE_LOAD(GraphLaunch);
	MORE_LOAD(GraphExecDestroy);
	MORE_LOAD(GraphDestroy);
}

int main(int argc, char **argv)
{
	struct options options = { .interval = 20, .mib = 4 };
	struct array array;
	CUgraphExec exec;
	CUstream stream;
	pthread_t thread;
	unsigned rest;

	options_parse(&options, argc, argv);
	rest = options.interval;
	options.interval = 0;
	gpu_open();
	load();
	CHECK(cuda.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	array_make(&array, (options.mib << 20) / sizeof(uint64_t), 11, stream);
	/* Part of a graph: memory of the driver's. */
	free(array.host_sum);
	CHECK(cuda.MemHostAlloc((void **)&array.host_sum, sizeof(*array.host_sum), 0));
	if (pthread_create(&thread, NULL, allocate, NULL))
		return 8;
	report_ready(&options);
	do {
		exec = capture(&array, rest);
		for (int i = 0; i < LAUNCHES; i++) {
			CHECK(more_GraphLaunch(exec, stream));
			model_step(&array.model);
		}
		array_verify(&array);
		CHECK(more_GraphExecDestroy(exec));
	} while (report_step(&options, array.model.steps, array.model.sum));
	_exit(0);
}
