// SPDX-License-Identifier: Apache-2.0
/* Functions of the program that a stream calls. They may not use the driver (gate.c), and a
 * checkpoint's Lock waits for them. */
#include "softgpu.h"

static CUresult run(struct work *work)
{
	gate_callback_begin();
	if (work->host.callback)
		work->host.callback(work->host.handle, CUDA_SUCCESS, work->argument);
	else
		work->host.function(work->argument);
	gate_callback_end();
	return CUDA_SUCCESS;
}

static CUresult submit(CUstream handle, const struct work *work)
{
	ENTER_CONTEXT(ctx);
	struct stream *s;
	CUresult result = stream_resolve(ctx, handle, &s);

	return result ? result : stream_submit(s, work, NULL);
}

CUDA_API(cuLaunchHostFunc, CUstream stream, CUhostFn function, void *data)
{
	struct work work = { .run = run, .argument = data };

	if (!function)
		return CUDA_ERROR_INVALID_VALUE;
	work.host.function = function;
	return submit(stream, &work);
}

CUDA_API(cuLaunchHostFunc_ptsz, CUstream stream, CUhostFn function, void *data)
{
	return cuLaunchHostFunc(per_thread(stream), function, data);
}

CUDA_API(cuStreamAddCallback, CUstream stream, CUstreamCallback callback, void *data, unsigned int flags)
{
	struct work work = { .run = run, .argument = data };

	if (!callback || flags)
		return CUDA_ERROR_INVALID_VALUE;
	work.host.callback = callback;
	work.host.handle = stream;
	return submit(stream, &work);
}

CUDA_API(cuStreamAddCallback_ptsz, CUstream stream, CUstreamCallback callback, void *data, unsigned int flags)
{
	return cuStreamAddCallback(per_thread(stream), callback, data, flags);
}
