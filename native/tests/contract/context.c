// SPDX-License-Identifier: Apache-2.0
/* Contexts: what needs one, the stack of a thread, the primary one. */
#include "contract.h"

#include <pthread.h>

static void without(void)
{
	size_t free_bytes, total;
	CUdeviceptr memory;
	CUstream stream;
	CUdevice device;
	CUevent event;
	CUcontext ctx = (CUcontext)1;

	code("none-current", cu.CtxGetCurrent(&ctx));
	yes("none-is-null", !ctx);
	code("none-synchronize", cu.CtxSynchronize());
	code("none-alloc", cu.MemAlloc(&memory, 4096));
	code("none-info", cu.MemGetInfo(&free_bytes, &total));
	code("none-device", cu.CtxGetDevice(&device));
	code("none-stream", cu.StreamCreate(&stream, 0));
	code("none-event", cu.EventCreate(&event, 0));
	code("none-pop", cu.CtxPopCurrent(&ctx));
	code("none-memset", cu.MemsetD8(0x10000, 0, 16));
}

static CUcontext current(void)
{
	CUcontext ctx = NULL;

	NEED(cu.CtxGetCurrent(&ctx));
	return ctx;
}

static void *on_another_thread(void *unused)
{
	yes("thread-starts-without", !current());
	code("thread-synchronize", cu.CtxSynchronize());
	code("thread-set", cu.CtxSetCurrent(contract_context));
	code("thread-synchronize-with", cu.CtxSynchronize());
	return unused;
}

static void stack(CUcontext made)
{
	CUcontext popped = NULL;

	yes("create-makes-current", current() == made);
	code("push", cu.CtxPushCurrent(contract_context));
	yes("push-on-top", current() == contract_context);
	code("pop", cu.CtxPopCurrent(&popped));
	yes("pop-gives-top", popped == contract_context && current() == made);
	code("push-same", cu.CtxPushCurrent(made));
	code("set-replaces-top", cu.CtxSetCurrent(contract_context));
	yes("set-is-current", current() == contract_context);
	code("set-null-pops", cu.CtxSetCurrent(NULL));
	yes("set-null-shows-next", current() == made);
	code("push-null", cu.CtxPushCurrent(NULL));
}

void group_context(void)
{
	CUcontext again = NULL, made = NULL, popped = NULL;
	CUdeviceptr memory;
	CUdevice device = -1;
	pthread_t thread;
	unsigned flags, version = 0;
	size_t limit = 0;
	int active = 0;

	NEED(cu.Init(0));
	without();
	contract_open();
	code("retain", cu.DevicePrimaryCtxRetain(&again, 0));
	yes("retain-same", again == contract_context);
	code("primary-state", cu.DevicePrimaryCtxGetState(0, &flags, &active));
	value("primary-active", "%d", active);
	code("get-device", cu.CtxGetDevice(&device));
	value("device", "%d", device);
	code("synchronize", cu.CtxSynchronize());
	code("api-version", cu.CtxGetApiVersion(contract_context, &version));
	yes("api-version-plausible", version >= 3010);
	code("limit-stack", cu.CtxGetLimit(&limit, CU_LIMIT_STACK_SIZE));
	yes("limit-plausible", limit >= 512);
	code("limit-unknown", cu.CtxGetLimit(&limit, 4711));
	pthread_create(&thread, NULL, on_another_thread, NULL);
	pthread_join(thread, NULL);
	code("create", cu.CtxCreate(&made, 0, 0));
	stack(made);
	code("alloc-in-it", cu.MemAlloc(&memory, MIB));
	code("destroy", cu.CtxDestroy(made));
	yes("destroy-shows-next", current() == contract_context);
	code("destroy-null", cu.CtxDestroy(NULL));
	code("its-memory-gone", cu.MemFree(memory));
	code("pop-last", cu.CtxPopCurrent(&popped));
	yes("nothing-left", popped == contract_context && !current());
	code("pop-empty", cu.CtxPopCurrent(&popped));
	code("set-null-empty", cu.CtxSetCurrent(NULL));
	code("release", cu.DevicePrimaryCtxRelease(0));
	code("release-last", cu.DevicePrimaryCtxRelease(0));
	NEED(cu.DevicePrimaryCtxGetState(0, &flags, &active));
	value("released-active", "%d", active);
	code("release-beyond", cu.DevicePrimaryCtxRelease(0));
	code("reset", cu.DevicePrimaryCtxReset(0));
	contract_open();
	code("alloc-after-reset", cu.MemAlloc(&memory, MIB));
}
