// SPDX-License-Identifier: Apache-2.0
/* Streams: order, independence, the default ones. */
#include "contract.h"

#include <pthread.h>

static struct kernels k;
static CUdeviceptr done;

static uint64_t counted(void)
{
	uint64_t count = 0;

	NEED(cu.MemcpyDtoH(&count, done, sizeof(count)));
	return count;
}

static void properties(CUstream stream)
{
	CUstreamCaptureStatus capture = 77;
	int least = 0, greatest = 0, priority = 77;
	CUcontext ctx = NULL;
	CUstream other;
	unsigned flags = 77;

	code("get-flags", cu.StreamGetFlags(stream, &flags));
	value("flags-are", "%u", flags);
	code("priority-range", cu.CtxGetStreamPriorityRange(&least, &greatest));
	yes("priority-range-plausible", greatest <= least);
	code("create-with-priority", cu.StreamCreateWithPriority(&other, CU_STREAM_NON_BLOCKING, greatest));
	code("get-priority", cu.StreamGetPriority(other, &priority));
	yes("priority-kept", priority == greatest);
	code("get-context", cu.StreamGetCtx(stream, &ctx));
	yes("context-is-ours", ctx == contract_context);
	code("capturing", cu.StreamIsCapturing(stream, &capture));
	value("capturing-is", "%d", capture);
	code("create-null", cu.StreamCreate(NULL, 0));
	code("create-flags", cu.StreamCreate(&other, 0x4000));
	code("destroy-null", cu.StreamDestroy(NULL));
}

static void order(CUstream stream)
{
	CUdeviceptr word;
	unsigned got = 0;
	double before;

	NEED(cu.MemAlloc(&word, 4));
	code("query-idle", cu.StreamQuery(stream));
	code("query-default", cu.StreamQuery(NULL));
	before = now_ms();
	launch_spin(&k, SPIN_MS, done, stream);
	NEED(cu.MemsetD32Async(word, 1, 1, stream));
	NEED(cu.MemsetD32Async(word, 2, 1, stream));
	yes("launch-returns-early", now_ms() - before < SPIN_MS - 100);
	code("query-busy", cu.StreamQuery(stream));
	code("synchronize", cu.StreamSynchronize(stream));
	yes("synchronize-waits", now_ms() - before > SPIN_MS - 20);
	code("query-finished", cu.StreamQuery(stream));
	NEED(cu.MemcpyDtoH(&got, word, 4));
	value("last-wins", "%u", got);
	NEED(cu.MemFree(word));
}

/* A stream waits for the default stream and the other way round, unless it is non-blocking. */
static void default_stream(CUstream blocking, CUstream free)
{
	CUdeviceptr word;

	NEED(cu.MemAlloc(&word, 4));
	launch_spin(&k, SPIN_MS, done, blocking);
	NEED(cu.MemsetD32Async(word, 3, 1, NULL));
	NEED(cu.StreamSynchronize(NULL));
	code("default-waits-for-blocking", cu.StreamQuery(blocking));
	launch_spin(&k, SPIN_MS, done, free);
	NEED(cu.MemsetD32Async(word, 4, 1, NULL));
	NEED(cu.StreamSynchronize(NULL));
	code("default-leaves-non-blocking", cu.StreamQuery(free));
	NEED(cu.StreamSynchronize(free));
	launch_spin(&k, SPIN_MS, done, NULL);
	NEED(cu.MemsetD32Async(word, 5, 1, blocking));
	code("blocking-waits-for-default", cu.StreamQuery(blocking));
	code("context-synchronize", cu.CtxSynchronize());
	code("nothing-left", cu.StreamQuery(blocking));
	NEED(cu.MemFree(word));
}

static void *query_of_another_thread(void *query)
{
	CUresult (*stream_query)(CUstream) = *(CUresult(**)(CUstream))query;

	NEED(cu.CtxSetCurrent(contract_context));
	code("per-thread-of-another", stream_query(NULL));
	return NULL;
}

/* What a program built with --default-stream per-thread looks up. */
static void per_thread(void)
{
	CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
			   CUstream, void **, void **);
	CUresult (*query)(CUstream);
	uint64_t ns = SPIN_MS * 1000000ull;
	void *arguments[] = { &ns, &done };
	pthread_t thread;

	code("per-thread-launch", cu.GetProcAddress("cuLaunchKernel", (void **)&launch, 12000, 2, NULL));
	code("per-thread-query", cu.GetProcAddress("cuStreamQuery", (void **)&query, 12000, 2, NULL));
	NEED(launch(k.spin, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
	code("per-thread-busy", query(NULL));
	code("per-thread-by-handle", cu.StreamQuery(CU_STREAM_PER_THREAD));
	pthread_create(&thread, NULL, query_of_another_thread, &query);
	pthread_join(thread, NULL);
	code("per-thread-synchronize", cu.StreamSynchronize(CU_STREAM_PER_THREAD));
	code("per-thread-idle", query(NULL));
	code("legacy-by-handle", cu.StreamQuery(CU_STREAM_LEGACY));
}

void group_stream(void)
{
	CUstream blocking, free;
	uint64_t before;

	contract_open();
	contract_kernels(&k);
	NEED(cu.MemAlloc(&done, 8));
	NEED(cu.MemsetD8(done, 0, 8));
	NEED(cu.CtxSynchronize());
	code("create", cu.StreamCreate(&blocking, 0));
	NEED(cu.StreamCreate(&free, CU_STREAM_NON_BLOCKING));
	properties(free);
	order(free);
	default_stream(blocking, free);
	per_thread();
	before = counted();
	launch_spin(&k, SPIN_MS, done, free);
	code("destroy-busy", cu.StreamDestroy(free));
	code("synchronize-after", cu.CtxSynchronize());
	yes("destroyed-but-finished", counted() == before + 1);
	code("destroy", cu.StreamDestroy(blocking));
}
