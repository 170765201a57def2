// SPDX-License-Identifier: Apache-2.0
/* Copies. Addresses that the device knows are translated when the copy is done, all others are
 * the program's own memory. */
#include "softgpu.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define STAGED 65536

static void *place(uint64_t address, size_t size, int access)
{
	bool known;

	pthread_mutex_lock(&memory_lock);
	known = span_find(address);
	pthread_mutex_unlock(&memory_lock);
	return known ? memory_at(address, size, access) : (void *)address;
}

static CUresult run(struct work *work)
{
	void *to = place(work->copy.to, work->copy.size, PROT_WRITE);
	void *from = work->argument ? work->argument : place(work->copy.from, work->copy.size, PROT_READ);

	if (!to || !from)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	memmove(to, from, work->copy.size);
	return CUDA_SUCCESS;
}

enum side { DEVICE, HOST, ANY };

static bool good(uint64_t address, size_t size, enum side side, int access)
{
	if (side == DEVICE)
		return memory_at(address, size, access) != NULL;
	return address && place(address, size, access);
}

/* Pageable memory of the program: the driver takes a copy of small pieces and waits for large. */
static CUresult submit(struct stream *s, struct work *work)
{
	uint64_t from = work->copy.from, to = work->copy.to;
	size_t size = work->copy.size;
	CUresult result;

	if (!memory_known(to, size) && !memory_pinned(to, size))
		return stream_run(s, work);
	if (memory_known(from, size) || memory_pinned(from, size))
		return stream_submit(s, work, NULL);
	if (size > STAGED || !(work->argument = malloc(size)))
		return stream_run(s, work);
	memcpy(work->argument, (void *)from, size);
	work->owns_argument = true;
	result = stream_submit(s, work, NULL);
	if (result)
		free(work->argument);
	return result;
}

static CUresult copy(uint64_t to, enum side to_side, uint64_t from, enum side from_side, size_t size,
		     CUstream stream, bool wait)
{
	ENTER_CONTEXT(ctx);
	struct work work = { .run = run, .copy = { to, from, size } };
	struct stream *s;
	CUresult result;

	if (!size)
		return CUDA_SUCCESS;
	if (!good(to, size, to_side, PROT_WRITE) || !good(from, size, from_side, PROT_READ))
		return CUDA_ERROR_INVALID_VALUE;
	result = stream_resolve(ctx, stream, &s);
	if (result)
		return result;
	return wait ? stream_run(s, &work) : submit(s, &work);
}

/* One function, its variant for per-thread default streams, and both again for a given stream. */
#define COPY(name, v, to_type, to_side, from_type, from_side)                                             \
	CUDA_API(name##v, to_type to, from_type from, size_t size)                                        \
	{                                                                                                 \
		return copy((uint64_t)to, to_side, (uint64_t)from, from_side, size, NULL, true);          \
	}                                                                                                 \
	CUDA_API(name##v##_ptds, to_type to, from_type from, size_t size)                                 \
	{                                                                                                 \
		return copy((uint64_t)to, to_side, (uint64_t)from, from_side, size, CU_STREAM_PER_THREAD, \
			    true);                                                                        \
	}                                                                                                 \
	CUDA_API(name##Async##v, to_type to, from_type from, size_t size, CUstream stream)                \
	{                                                                                                 \
		return copy((uint64_t)to, to_side, (uint64_t)from, from_side, size, stream, false);       \
	}                                                                                                 \
	CUDA_API(name##Async##v##_ptsz, to_type to, from_type from, size_t size, CUstream stream)         \
	{                                                                                                 \
		return copy((uint64_t)to, to_side, (uint64_t)from, from_side, size, per_thread(stream),   \
			    false);                                                                       \
	}

COPY(cuMemcpyHtoD, _v2, CUdeviceptr, DEVICE, const void *, HOST)
COPY(cuMemcpyDtoH, _v2, void *, HOST, CUdeviceptr, DEVICE)
COPY(cuMemcpyDtoD, _v2, CUdeviceptr, DEVICE, CUdeviceptr, DEVICE)
COPY(cuMemcpy, , CUdeviceptr, ANY, CUdeviceptr, ANY)
