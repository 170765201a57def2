// SPDX-License-Identifier: Apache-2.0
/* What a context says about itself. */
#include "softgpu.h"

CUDA_API(cuCtxGetApiVersion, CUcontext handle, unsigned int *version)
{
	ENTER();
	struct context *ctx = context_find(handle ? handle : thread_context());

	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	*version = ctx->version;
	return CUDA_SUCCESS;
}

CUDA_API(cuCtxGetFlags, unsigned int *flags)
{
	ENTER_CONTEXT(ctx);
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = ctx->flags;
	return CUDA_SUCCESS;
}

CUDA_API(cuCtxSetFlags, unsigned int flags)
{
	ENTER_CONTEXT(ctx);
	if (flags & ~CU_CTX_FLAGS_MASK)
		return CUDA_ERROR_INVALID_VALUE;
	ctx->flags = flags;
	return CUDA_SUCCESS;
}

CUDA_API(cuCtxGetId, CUcontext handle, unsigned long long *id)
{
	ENTER();
	struct context *ctx = context_find(handle ? handle : thread_context());

	if (!id)
		return CUDA_ERROR_INVALID_VALUE;
	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	*id = ctx->id;
	return CUDA_SUCCESS;
}

CUDA_API(cuCtxGetLimit, size_t *value, CUlimit limit)
{
	ENTER_CONTEXT(ctx);
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if ((unsigned)limit >= ARRAY_SIZE(ctx->limits))
		return CUDA_ERROR_INVALID_VALUE;
	*value = ctx->limits[limit];
	return CUDA_SUCCESS;
}

CUDA_API(cuCtxSetLimit, CUlimit limit, size_t value)
{
	ENTER_CONTEXT(ctx);
	if ((unsigned)limit >= ARRAY_SIZE(ctx->limits))
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	ctx->limits[limit] = value;
	return CUDA_SUCCESS;
}

CUDA_API(cuCtxGetCacheConfig, CUfunc_cache *config)
{
	ENTER_CONTEXT(ctx);
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	*config = 0;
	return CUDA_SUCCESS;
}

CUDA_API(cuCtxSetCacheConfig, CUfunc_cache config)
{
	ENTER_CONTEXT(ctx);
	return CUDA_SUCCESS;
}

CUDA_API(cuCtxGetSharedMemConfig, CUsharedconfig *config)
{
	ENTER_CONTEXT(ctx);
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	*config = 1;
	return CUDA_SUCCESS;
}

CUDA_API(cuCtxSetSharedMemConfig, CUsharedconfig config)
{
	ENTER_CONTEXT(ctx);
	return CUDA_SUCCESS;
}

CUDA_API(cuCtxGetStreamPriorityRange, int *least, int *greatest)
{
	ENTER_CONTEXT(ctx);
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return CUDA_SUCCESS;
}

CUDA_API(cuCtxEnablePeerAccess, CUcontext peer, unsigned int flags)
{
	ENTER_CONTEXT(ctx);
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	return context_find(peer) ? CUDA_ERROR_PEER_ACCESS_UNSUPPORTED : CUDA_ERROR_INVALID_CONTEXT;
}
