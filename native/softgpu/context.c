// SPDX-License-Identifier: Apache-2.0
/* Contexts: the primary one of the device and those that a program makes. */
#include "softgpu.h"

#include <stdlib.h>

#define MAGIC 0xc0de0001

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct context *contexts;
static struct context *primary;
static unsigned primary_flags;

/* A context is never given back to malloc: stale handles are recognised, never followed. */
static struct context *make(unsigned flags, unsigned version)
{
	static uint64_t last_id;
	struct context *ctx = calloc(1, sizeof(*ctx));

	if (!ctx)
		return NULL;
	ctx->magic = MAGIC;
	ctx->flags = flags;
	ctx->version = version;
	ctx->limits[CU_LIMIT_STACK_SIZE] = 1024;
	ctx->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20;
	ctx->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20;
	pthread_mutex_lock(&lock);
	ctx->id = ++last_id;
	ctx->next = contexts;
	contexts = ctx;
	pthread_mutex_unlock(&lock);
	ctx->legacy = stream_make(ctx, 0, 0, true);
	if (!ctx->legacy)
		return NULL;
	ctx->active = true;
	return ctx;
}

struct context *context_find(CUcontext handle)
{
	struct context *ctx;

	pthread_mutex_lock(&lock);
	for (ctx = contexts; ctx && (CUcontext)ctx != handle; ctx = ctx->next)
		;
	pthread_mutex_unlock(&lock);
	return ctx && ctx->active ? ctx : NULL;
}

/* Takes no lock. */
CUresult context_current(struct context **ctx)
{
	*ctx = (struct context *)thread_context();
	if (!*ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!(*ctx)->active)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	return atomic_load(&(*ctx)->error);
}

CUresult context_synchronize(struct context *ctx)
{
	for (struct stream *s = ctx->streams; s; s = s->next)
		stream_wait(s, atomic_load(&s->submitted));
	return atomic_load(&ctx->error);
}

/* What belongs to a context goes with it. */
static void clear(struct context *ctx)
{
	context_synchronize(ctx);
	ctx->active = false;
	for (struct stream *s = ctx->streams; s; s = s->next) {
		if (s != ctx->legacy && !s->vacant)
			stream_drop(s);
	}
	module_forget(ctx);
	heap_forget(ctx);
	host_forget(ctx);
	atomic_store(&ctx->error, CUDA_SUCCESS);
}

static CUresult create(CUcontext *out, unsigned flags, CUdevice dev, unsigned version)
{
	struct context *ctx;

	if (!out || (flags & ~CU_CTX_FLAGS_MASK))
		return CUDA_ERROR_INVALID_VALUE;
	if (dev != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	ctx = make(flags, version);
	if (!ctx)
		return CUDA_ERROR_OUT_OF_MEMORY;
	thread_push((CUcontext)ctx);
	*out = (CUcontext)ctx;
	return CUDA_SUCCESS;
}

CUDA_API(cuCtxCreate_v2, CUcontext *ctx, unsigned int flags, CUdevice dev)
{
	ENTER();
	return create(ctx, flags, dev, 3020);
}

CUDA_API(cuCtxCreate_v3, CUcontext *ctx, CUexecAffinityParam *affinity, int count, unsigned int flags,
	 CUdevice dev)
{
	ENTER();
	if (count)
		return CUDA_ERROR_NOT_SUPPORTED;
	return create(ctx, flags, dev, 3020);
}

CUDA_API(cuCtxCreate_v4, CUcontext *ctx, CUctxCreateParams *params, unsigned int flags, CUdevice dev)
{
	ENTER();
	if (params && (params->numExecAffinityParams || params->cigParams))
		return CUDA_ERROR_NOT_SUPPORTED;
	return create(ctx, flags, dev, 3020);
}

CUDA_API(cuCtxDestroy_v2, CUcontext handle)
{
	ENTER();
	struct context *ctx = context_find(handle);

	if (!ctx)
		return handle ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_VALUE;
	if (ctx->primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	clear(ctx);
	if (thread_context() == handle)
		thread_pop(NULL);
	return CUDA_SUCCESS;
}

static CUresult check_device(CUdevice dev)
{
	return dev == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUDA_API(cuDevicePrimaryCtxRetain, CUcontext *ctx, CUdevice dev)
{
	ENTER();
	if (!ctx)
		return CUDA_ERROR_INVALID_VALUE;
	if (check_device(dev))
		return check_device(dev);
	if (!primary) {
		primary = make(primary_flags, 3020);
		if (!primary)
			return CUDA_ERROR_OUT_OF_MEMORY;
		primary->primary = true;
	}
	primary->active = true;
	primary->references++;
	*ctx = (CUcontext)primary;
	return CUDA_SUCCESS;
}

CUDA_API(cuDevicePrimaryCtxRelease_v2, CUdevice dev)
{
	ENTER();
	if (check_device(dev))
		return check_device(dev);
	if (!primary || !primary->references)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (--primary->references == 0)
		clear(primary);
	return CUDA_SUCCESS;
}

CUDA_API(cuDevicePrimaryCtxRelease, CUdevice dev)
{
	return cuDevicePrimaryCtxRelease_v2(dev);
}

CUDA_API(cuDevicePrimaryCtxReset_v2, CUdevice dev)
{
	ENTER();
	if (check_device(dev))
		return check_device(dev);
	if (primary && primary->active)
		clear(primary);
	return CUDA_SUCCESS;
}

CUDA_API(cuDevicePrimaryCtxReset, CUdevice dev)
{
	return cuDevicePrimaryCtxReset_v2(dev);
}

CUDA_API(cuDevicePrimaryCtxSetFlags_v2, CUdevice dev, unsigned int flags)
{
	ENTER();
	if (check_device(dev))
		return check_device(dev);
	if (flags & ~CU_CTX_FLAGS_MASK)
		return CUDA_ERROR_INVALID_VALUE;
	primary_flags = flags;
	if (primary)
		primary->flags = flags;
	return CUDA_SUCCESS;
}

CUDA_API(cuDevicePrimaryCtxSetFlags, CUdevice dev, unsigned int flags)
{
	return cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

CUDA_API(cuDevicePrimaryCtxGetState, CUdevice dev, unsigned int *flags, int *active)
{
	ENTER();
	if (check_device(dev))
		return check_device(dev);
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = primary_flags;
	*active = primary && primary->active;
	return CUDA_SUCCESS;
}

CUDA_API(cuCtxGetCurrent, CUcontext *ctx)
{
	ENTER();
	if (!ctx)
		return CUDA_ERROR_INVALID_VALUE;
	*ctx = thread_context();
	return CUDA_SUCCESS;
}

CUDA_API(cuCtxSetCurrent, CUcontext ctx)
{
	ENTER();
	if (ctx && !context_find(ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	thread_replace(ctx);
	return CUDA_SUCCESS;
}

CUDA_API(cuCtxPushCurrent_v2, CUcontext ctx)
{
	ENTER();
	if (!ctx)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context_find(ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	thread_push(ctx);
	return CUDA_SUCCESS;
}

CUDA_API(cuCtxPopCurrent_v2, CUcontext *ctx)
{
	ENTER();
	return thread_pop(ctx);
}

CUDA_API(cuCtxGetDevice, CUdevice *dev)
{
	ENTER_CONTEXT(ctx);
	if (!dev)
		return CUDA_ERROR_INVALID_VALUE;
	*dev = 0;
	return CUDA_SUCCESS;
}

/* Polls: see notify.c. */
CUDA_API(cuCtxSynchronize, void)
{
	struct context *ctx;
	CUresult result = gate_peek();

	if (!result)
		result = context_current(&ctx);
	return result ? result : context_synchronize(ctx);
}

/* CUDA 13 gave both of these a context argument. */
CUDA_API(cuCtxGetDevice_v2, CUdevice *dev, CUcontext handle)
{
	ENTER();
	if (!handle)
		return cuCtxGetDevice(dev);
	if (!context_find(handle))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!dev)
		return CUDA_ERROR_INVALID_VALUE;
	*dev = 0;
	return CUDA_SUCCESS;
}

CUDA_API(cuCtxSynchronize_v2, CUcontext handle)
{
	struct context *ctx = (struct context *)handle;

	if (!handle)
		return cuCtxSynchronize();
	if (gate_peek())
		return gate_peek();
	if (ctx->magic != MAGIC || !ctx->active)
		return CUDA_ERROR_INVALID_CONTEXT;
	return context_synchronize(ctx);
}
