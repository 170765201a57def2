// SPDX-License-Identifier: Apache-2.0
/* The stack of contexts that every thread has; its top is the current one. */
#include "softgpu.h"

#define DEPTH 64

static __thread CUcontext stack[DEPTH];
static __thread unsigned height;

CUcontext thread_context(void)
{
	return height ? stack[height - 1] : NULL;
}

void thread_push(CUcontext ctx)
{
	if (height < DEPTH)
		stack[height++] = ctx;
}

CUresult thread_pop(CUcontext *ctx)
{
	if (!height)
		return CUDA_ERROR_INVALID_CONTEXT;
	height--;
	if (ctx)
		*ctx = stack[height];
	return CUDA_SUCCESS;
}

/* NULL takes the top away. */
void thread_replace(CUcontext ctx)
{
	if (height)
		height--;
	if (ctx)
		thread_push(ctx);
}
