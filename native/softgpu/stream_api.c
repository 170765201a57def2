// SPDX-License-Identifier: Apache-2.0
/* The stream functions of the driver API. */
#include "softgpu.h"

#define ENTER_STREAM(ctx, handle, s)                           \
	ENTER_CONTEXT(ctx);                                    \
	struct stream *s;                                      \
	CUresult s##_result = stream_resolve(ctx, handle, &s); \
	if (s##_result)                                        \
	return s##_result

CUDA_API(cuStreamCreateWithPriority, CUstream *stream, unsigned int flags, int priority)
{
	ENTER_CONTEXT(ctx);
	struct stream *s;

	if (!stream || (flags & ~CU_STREAM_NON_BLOCKING))
		return CUDA_ERROR_INVALID_VALUE;
	priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
	s = stream_make(ctx, flags, priority, false);
	if (!s)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*stream = (CUstream)s;
	return CUDA_SUCCESS;
}

CUDA_API(cuStreamCreate, CUstream *stream, unsigned int flags)
{
	return cuStreamCreateWithPriority(stream, flags, 0);
}

CUDA_API(cuStreamDestroy_v2, CUstream handle)
{
	ENTER_STREAM(ctx, handle, s);
	if (s->hidden)
		return CUDA_ERROR_INVALID_HANDLE;
	stream_drop(s);
	return CUDA_SUCCESS;
}

/* Polls: see notify.c. */
CUDA_API(cuStreamQuery, CUstream handle)
{
	struct context *ctx;
	struct stream *s;
	CUresult result = gate_peek();

	if (!result)
		result = context_current(&ctx);
	if (!result)
		result = stream_resolve(ctx, handle, &s);
	if (!result)
		result = graph_waits(s);
	if (result)
		return result;
	return stream_idle(s) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUDA_API(cuStreamQuery_ptsz, CUstream stream)
{
	return cuStreamQuery(per_thread(stream));
}

/* The legacy default stream stands for all streams that are not non-blocking. */
static void wait_blocking(struct context *ctx)
{
	for (struct stream *s = ctx->streams; s; s = s->next) {
		if (!(s->flags & CU_STREAM_NON_BLOCKING))
			stream_wait(s, atomic_load(&s->submitted));
	}
}

CUDA_API(cuStreamSynchronize, CUstream handle)
{
	ENTER_STREAM(ctx, handle, s);
	CUresult result = graph_waits(s);

	if (result)
		return result;
	if (s == ctx->legacy)
		wait_blocking(ctx);
	else
		stream_wait(s, atomic_load(&s->submitted));
	return atomic_load(&ctx->error);
}

CUDA_API(cuStreamSynchronize_ptsz, CUstream stream)
{
	return cuStreamSynchronize(per_thread(stream));
}

CUDA_API(cuStreamGetPriority, CUstream handle, int *priority)
{
	ENTER_STREAM(ctx, handle, s);
	if (!priority)
		return CUDA_ERROR_INVALID_VALUE;
	*priority = s->priority;
	return CUDA_SUCCESS;
}

CUDA_API(cuStreamGetPriority_ptsz, CUstream stream, int *priority)
{
	return cuStreamGetPriority(per_thread(stream), priority);
}

CUDA_API(cuStreamGetFlags, CUstream handle, unsigned int *flags)
{
	ENTER_STREAM(ctx, handle, s);
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = s->flags;
	return CUDA_SUCCESS;
}

CUDA_API(cuStreamGetFlags_ptsz, CUstream stream, unsigned int *flags)
{
	return cuStreamGetFlags(per_thread(stream), flags);
}

CUDA_API(cuStreamGetId, CUstream handle, unsigned long long *id)
{
	ENTER_STREAM(ctx, handle, s);
	if (!id)
		return CUDA_ERROR_INVALID_VALUE;
	*id = s->id;
	return CUDA_SUCCESS;
}

CUDA_API(cuStreamGetId_ptsz, CUstream stream, unsigned long long *id)
{
	return cuStreamGetId(per_thread(stream), id);
}

CUDA_API(cuStreamGetCtx, CUstream handle, CUcontext *context)
{
	ENTER_STREAM(ctx, handle, s);
	if (!context)
		return CUDA_ERROR_INVALID_VALUE;
	*context = (CUcontext)s->ctx;
	return CUDA_SUCCESS;
}

CUDA_API(cuStreamGetCtx_ptsz, CUstream stream, CUcontext *context)
{
	return cuStreamGetCtx(per_thread(stream), context);
}

CUDA_API(cuStreamGetDevice, CUstream handle, CUdevice *dev)
{
	ENTER_STREAM(ctx, handle, s);
	if (!dev)
		return CUDA_ERROR_INVALID_VALUE;
	*dev = 0;
	return CUDA_SUCCESS;
}

CUDA_API(cuStreamGetDevice_ptsz, CUstream stream, CUdevice *dev)
{
	return cuStreamGetDevice(per_thread(stream), dev);
}
