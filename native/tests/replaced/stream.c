// SPDX-License-Identifier: Apache-2.0
/* What happens during a stream capture and inside host functions. */
#include "replaced.h"

#include <stdatomic.h>

#define PTSZ(name) name##_ptsz

static CUstream stream;

static int status(void)
{
	CUstreamCaptureStatus now = 77;

	if (CALL(cuStreamIsCapturing, (CUstream, CUstreamCaptureStatus *), stream, &now))
		return -1;
	return now;
}

static CUstreamCaptureMode exchange(CUstreamCaptureMode mode)
{
	NEED(CALL(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *), &mode));
	return mode;
}

static CUresult some_alloc(void)
{
	CUdeviceptr memory = 0;
	CUresult result = CALL(cuMemAlloc_v2, (CUdeviceptr *, size_t), &memory, 3 * MIB);

	if (!result)
		release(memory);
	return result;
}

static CUresult some_small_alloc(void)
{
	CUdeviceptr memory = 0;

	return CALL(cuMemAlloc_v2, (CUdeviceptr *, size_t), &memory, 100);
}

static CUdeviceptr victim;

static CUresult some_free(void)
{
	return release(victim);
}

static CUresult some_create(void)
{
	CUmemGenericAllocationHandle handle;

	return create(&handle, 2 * MIB, &properties);
}

static CUresult some_query(void)
{
	CUdeviceptr base;
	size_t size;

	return CALL(cuMemGetAddressRange_v2, (CUdeviceptr *, size_t *, CUdeviceptr), &base, &size, victim);
}

static CUresult some_attribute(void)
{
	unsigned type;

	return CALL(cuPointerGetAttribute, (void *, int, CUdeviceptr), &type, 2, victim);
}

static const struct {
	const char *name;
	CUresult (*call)(void);
} attempts[] = {
	{ "alloc", some_alloc }, { "small-alloc", some_small_alloc },
	{ "free", some_free },	 { "create", some_create },
	{ "query", some_query }, { "attribute", some_attribute },
};

static void attempt(size_t i, CUstreamCaptureMode mode, CUstreamCaptureMode thread)
{
	CUstreamCaptureMode before;
	CUgraph graph = NULL;

	victim = allocate(3 * MIB);
	NEED(CALL(cuStreamBeginCapture_v2, (CUstream, CUstreamCaptureMode), stream, mode));
	before = exchange(thread);
	codes(attempts[i].call(), "%s-%d-%d", attempts[i].name, mode, thread);
	value("status", "%d", status());
	yes("thread-mode-stays", exchange(before) == thread);
	codes(CALL(cuStreamEndCapture, (CUstream, CUgraph *), stream, &graph), "%s-%d-%d-end",
	      attempts[i].name, mode, thread);
	yes("graph", graph != NULL);
	if (graph)
		CALL(cuGraphDestroy, (CUgraph), graph);
	release(victim);
}

void group_capture(void)
{
	open_primary();
	NEED(CALL(cuStreamCreate, (CUstream *, unsigned), &stream, CU_STREAM_NON_BLOCKING));
	for (size_t i = 0; i < ARRAY_SIZE(attempts); i++) {
		for (CUstreamCaptureMode mode = 0; mode < 3; mode++) {
			for (CUstreamCaptureMode thread = 0; thread < 3; thread++)
				attempt(i, mode, thread);
		}
	}
	code("alloc-afterwards", some_alloc());
	synchronize();
}

static struct {
	atomic_int calls;
	CUresult alloc, create, free, range, synchronize, status;
	CUdeviceptr memory;
} inside;

static void host_function(void *data)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr memory = 0, base;
	size_t size;

	inside.alloc = CALL(cuMemAlloc_v2, (CUdeviceptr *, size_t), &memory, 4096);
	inside.create = create(&handle, 2 * MIB, &properties);
	inside.free = release(inside.memory);
	inside.range = CALL(cuMemGetAddressRange_v2, (CUdeviceptr *, size_t *, CUdeviceptr), &base, &size,
			    inside.memory);
	inside.synchronize = CALL(cuCtxSynchronize, (void));
	atomic_fetch_add((atomic_int *)data, 1);
}

static void callback(CUstream of, CUresult result, void *data)
{
	inside.status = result;
	host_function(data);
}

static void show(const char *what)
{
	value(what, "calls %d alloc %d create %d free %d range %d synchronize %d", atomic_load(&inside.calls),
	      (int)inside.alloc, (int)inside.create, (int)inside.free, (int)inside.range,
	      (int)inside.synchronize);
}

void group_callback(void)
{
	open_primary();
	inside.memory = allocate(3 * MIB);
	NEED(CALL(cuStreamCreate, (CUstream *, unsigned), &stream, CU_STREAM_NON_BLOCKING));
	code("launch",
	     CALL(cuLaunchHostFunc, (CUstream, CUhostFn, void *), stream, host_function, &inside.calls));
	NEED(CALL(cuStreamSynchronize, (CUstream), stream));
	show("launched");
	code("launch-null", CALL(cuLaunchHostFunc, (CUstream, CUhostFn, void *), stream, NULL, NULL));
	code("launch-ptsz",
	     CALL(cuLaunchHostFunc_ptsz, (CUstream, CUhostFn, void *), NULL, host_function, &inside.calls));
	synchronize();
	show("launched-ptsz");
	code("add", CALL(cuStreamAddCallback, (CUstream, CUstreamCallback, void *, unsigned), stream,
			 callback, &inside.calls, 0));
	NEED(CALL(cuStreamSynchronize, (CUstream), stream));
	show("added");
	value("status", "%d", (int)inside.status);
	code("add-flags", CALL(cuStreamAddCallback, (CUstream, CUstreamCallback, void *, unsigned), stream,
			       callback, &inside.calls, 1));
	code("add-null", CALL(cuStreamAddCallback, (CUstream, CUstreamCallback, void *, unsigned), stream,
			      NULL, NULL, 0));
	code("add-ptsz", CALL(cuStreamAddCallback_ptsz, (CUstream, CUstreamCallback, void *, unsigned), NULL,
			      callback, &inside.calls, 0));
	synchronize();
	show("added-ptsz");
	for (int i = 0; i < 1000; i++)
		NEED(CALL(cuLaunchHostFunc, (CUstream, CUhostFn, void *), stream, host_function,
			  &inside.calls));
	NEED(CALL(cuStreamSynchronize, (CUstream), stream));
	show("thousand");
	code("free", release(inside.memory));
}
