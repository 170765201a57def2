// SPDX-License-Identifier: Apache-2.0
/* Launches. Parameters are copied at the call, as the driver does. */
#include "module.h"

#include <string.h>

static CUresult run(struct work *work)
{
	return work->launch.kernel->run(work->launch.arguments);
}

static void unpack(const struct kernel *kernel, void **params, uint64_t *arguments)
{
	for (unsigned i = 0; i < kernel->params; i++)
		memcpy(&arguments[i], params[i], kernel->size[i]);
}

/* The other way to hand over parameters: one buffer. */
static CUresult unpack_buffer(const struct kernel *kernel, void **extra, uint64_t *arguments)
{
	const char *buffer = NULL;
	size_t size = 0, at = 0;

	for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
		if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
			buffer = extra[1];
		else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
			size = *(size_t *)extra[1];
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	for (unsigned i = 0; i < kernel->params; i++) {
		at = ALIGN_UP(at, kernel->size[i]);
		if (!buffer || at + kernel->size[i] > size)
			return CUDA_ERROR_INVALID_VALUE;
		memcpy(&arguments[i], buffer + at, kernel->size[i]);
		at += kernel->size[i];
	}
	return CUDA_SUCCESS;
}

#define MAX_SHARED (227u << 10) /* a block's, of compute capability 9.0 */

static bool good_shape(const CUlaunchConfig *c)
{
	return c->gridDimX && c->gridDimY && c->gridDimZ && c->blockDimX && c->blockDimY && c->blockDimZ &&
	       c->gridDimY <= 65535 && c->gridDimZ <= 65535 && c->blockDimZ <= 64 &&
	       c->sharedMemBytes <= MAX_SHARED &&
	       (uint64_t)c->blockDimX * c->blockDimY * c->blockDimZ <= 1024;
}

static CUresult launch(const CUlaunchConfig *config, CUstream stream, CUfunction function, void **params,
		       void **extra)
{
	ENTER_CONTEXT(ctx);
	struct work work = { .run = run };
	struct function *f = function_find(function);
	struct stream *s;
	CUresult result = CUDA_SUCCESS;

	if (!f)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!good_shape(config) || (params && extra) || (!params && !extra && f->kernel->params))
		return CUDA_ERROR_INVALID_VALUE;
	work.launch.kernel = f->kernel;
	if (params)
		unpack(f->kernel, params, work.launch.arguments);
	else if (extra)
		result = unpack_buffer(f->kernel, extra, work.launch.arguments);
	if (!result)
		result = stream_resolve(ctx, stream, &s);
	return result ? result : stream_submit(s, &work, NULL);
}

#define SHAPE                                                                                \
	unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by, \
		unsigned int bz, unsigned int shared

CUDA_API(cuLaunchKernel, CUfunction function, SHAPE, CUstream stream, void **params, void **extra)
{
	CUlaunchConfig config = { .gridDimX = gx,
				  .gridDimY = gy,
				  .gridDimZ = gz,
				  .blockDimX = bx,
				  .blockDimY = by,
				  .blockDimZ = bz,
				  .sharedMemBytes = shared };

	return launch(&config, stream, function, params, extra);
}

CUDA_API(cuLaunchKernel_ptsz, CUfunction function, SHAPE, CUstream stream, void **params, void **extra)
{
	return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, per_thread(stream), params, extra);
}

CUDA_API(cuLaunchCooperativeKernel, CUfunction function, SHAPE, CUstream stream, void **params)
{
	return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, params, NULL);
}

CUDA_API(cuLaunchCooperativeKernel_ptsz, CUfunction function, SHAPE, CUstream stream, void **params)
{
	return cuLaunchCooperativeKernel(function, gx, gy, gz, bx, by, bz, shared, per_thread(stream),
					 params);
}

/* Attributes of a launch change nothing here. */
CUDA_API(cuLaunchKernelEx, const CUlaunchConfig *config, CUfunction function, void **params, void **extra)
{
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	return launch(config, config->hStream, function, params, extra);
}

CUDA_API(cuLaunchKernelEx_ptsz, const CUlaunchConfig *config, CUfunction function, void **params,
	 void **extra)
{
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	return launch(config, per_thread(config->hStream), function, params, extra);
}
