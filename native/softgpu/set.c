// SPDX-License-Identifier: Apache-2.0
/* Memsets of 1, 2 and 4 byte elements, in one row or many. */
#include "softgpu.h"

#include <string.h>
#include <sys/mman.h>

static void fill(void *at, unsigned value, unsigned element, size_t count)
{
	uint16_t *half = at;
	uint32_t *word = at;

	if (element == 1)
		memset(at, (int)value, count);
	for (size_t i = 0; element == 2 && i < count; i++)
		half[i] = (uint16_t)value;
	for (size_t i = 0; element == 4 && i < count; i++)
		word[i] = value;
}

static size_t extent(const struct work *work)
{
	return work->set.pitch * (work->set.height - 1) + work->set.width * work->set.element;
}

static CUresult run(struct work *work)
{
	char *at = memory_at(work->set.to, extent(work), PROT_WRITE);

	if (!at)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	for (size_t row = 0; row < work->set.height; row++)
		fill(at + row * work->set.pitch, work->set.value, work->set.element, work->set.width);
	return CUDA_SUCCESS;
}

static CUresult set(CUdeviceptr to, size_t pitch, unsigned value, unsigned element, size_t width,
		    size_t height, CUstream stream)
{
	ENTER_CONTEXT(ctx);
	struct work work = { .run = run, .set = { to, pitch, width, height, value, element } };
	struct stream *s;
	CUresult result;

	if (!width || !height)
		return CUDA_SUCCESS;
	if (to % element || (height > 1 && (pitch % element || pitch < width * element)))
		return CUDA_ERROR_INVALID_VALUE;
	if (!memory_at(to, extent(&work), PROT_WRITE))
		return CUDA_ERROR_INVALID_VALUE;
	result = stream_resolve(ctx, stream, &s);
	/* Without a stream too a memset only waits when it touches host memory. */
	return result ? result : stream_submit(s, &work, NULL);
}

#define SET(bits, type)                                                                                 \
	CUDA_API(cuMemsetD##bits##_v2, CUdeviceptr to, type value, size_t n)                            \
	{                                                                                               \
		return set(to, 0, value, bits / 8, n, 1, NULL);                                         \
	}                                                                                               \
	CUDA_API(cuMemsetD##bits##_v2_ptds, CUdeviceptr to, type value, size_t n)                       \
	{                                                                                               \
		return set(to, 0, value, bits / 8, n, 1, CU_STREAM_PER_THREAD);                         \
	}                                                                                               \
	CUDA_API(cuMemsetD##bits##Async, CUdeviceptr to, type value, size_t n, CUstream stream)         \
	{                                                                                               \
		return set(to, 0, value, bits / 8, n, 1, stream);                                       \
	}                                                                                               \
	CUDA_API(cuMemsetD##bits##Async_ptsz, CUdeviceptr to, type value, size_t n, CUstream stream)    \
	{                                                                                               \
		return set(to, 0, value, bits / 8, n, 1, per_thread(stream));                           \
	}                                                                                               \
	CUDA_API(cuMemsetD2D##bits##_v2, CUdeviceptr to, size_t pitch, type value, size_t width,        \
		 size_t height)                                                                         \
	{                                                                                               \
		return set(to, pitch, value, bits / 8, width, height, NULL);                            \
	}                                                                                               \
	CUDA_API(cuMemsetD2D##bits##_v2_ptds, CUdeviceptr to, size_t pitch, type value, size_t width,   \
		 size_t height)                                                                         \
	{                                                                                               \
		return set(to, pitch, value, bits / 8, width, height, CU_STREAM_PER_THREAD);            \
	}                                                                                               \
	CUDA_API(cuMemsetD2D##bits##Async, CUdeviceptr to, size_t pitch, type value, size_t width,      \
		 size_t height, CUstream stream)                                                        \
	{                                                                                               \
		return set(to, pitch, value, bits / 8, width, height, stream);                          \
	}                                                                                               \
	CUDA_API(cuMemsetD2D##bits##Async_ptsz, CUdeviceptr to, size_t pitch, type value, size_t width, \
		 size_t height, CUstream stream)                                                        \
	{                                                                                               \
		return set(to, pitch, value, bits / 8, width, height, per_thread(stream));              \
	}

SET(8, unsigned char)
SET(16, unsigned short)
SET(32, unsigned int)
