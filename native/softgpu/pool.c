// SPDX-License-Identifier: Apache-2.0
/* Stream-ordered allocation. Memory is there at once, and goes when the stream comes to it. */
#include "softgpu.h"

#include <stdlib.h>

/* The device's own pool is the address of this; pools that a program makes are as good. */
static char default_pool;

static CUresult allocate(CUdeviceptr *out, size_t size, CUstream stream)
{
	ENTER_CONTEXT(ctx);
	uint64_t address;
	struct stream *s;
	CUresult result;

	if (!out || !size)
		return CUDA_ERROR_INVALID_VALUE;
	result = stream_resolve(ctx, stream, &s);
	if (result)
		return result;
	pthread_mutex_lock(&memory_lock);
	result = heap_alloc(ctx, size, true, &address);
	pthread_mutex_unlock(&memory_lock);
	if (!result)
		*out = address;
	return result;
}

CUDA_API(cuMemAllocAsync, CUdeviceptr *address, size_t size, CUstream stream)
{
	return allocate(address, size, stream);
}

CUDA_API(cuMemAllocAsync_ptsz, CUdeviceptr *address, size_t size, CUstream stream)
{
	return allocate(address, size, per_thread(stream));
}

CUDA_API(cuMemAllocFromPoolAsync, CUdeviceptr *address, size_t size, CUmemoryPool pool, CUstream stream)
{
	return pool ? allocate(address, size, stream) : CUDA_ERROR_INVALID_VALUE;
}

CUDA_API(cuMemAllocFromPoolAsync_ptsz, CUdeviceptr *address, size_t size, CUmemoryPool pool, CUstream stream)
{
	return cuMemAllocFromPoolAsync(address, size, pool, per_thread(stream));
}

static CUresult run_free(struct work *work)
{
	CUresult result;

	pthread_mutex_lock(&memory_lock);
	result = heap_free(work->address);
	pthread_mutex_unlock(&memory_lock);
	return result ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

CUDA_API(cuMemFreeAsync, CUdeviceptr address, CUstream stream)
{
	ENTER_CONTEXT(ctx);
	struct work work = { .run = run_free, .address = address };
	struct block *block;
	struct stream *s;
	CUresult result;
	bool good;

	if (!address)
		return CUDA_ERROR_INVALID_VALUE;
	result = stream_resolve(ctx, stream, &s);
	if (result)
		return result;
	pthread_mutex_lock(&memory_lock);
	block = heap_block(address);
	good = block && block->address == address;
	pthread_mutex_unlock(&memory_lock);
	return good ? stream_submit(s, &work, NULL) : CUDA_ERROR_INVALID_VALUE;
}

CUDA_API(cuMemFreeAsync_ptsz, CUdeviceptr address, CUstream stream)
{
	return cuMemFreeAsync(address, per_thread(stream));
}

static CUresult device_pool(CUmemoryPool *pool, CUdevice dev)
{
	ENTER();
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	if (dev != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	*pool = (CUmemoryPool)&default_pool;
	return CUDA_SUCCESS;
}

CUDA_API(cuDeviceGetDefaultMemPool, CUmemoryPool *pool, CUdevice dev)
{
	return device_pool(pool, dev);
}

CUDA_API(cuDeviceGetMemPool, CUmemoryPool *pool, CUdevice dev)
{
	return device_pool(pool, dev);
}

CUDA_API(cuDeviceSetMemPool, CUdevice dev, CUmemoryPool pool)
{
	CUmemoryPool current;

	return pool ? device_pool(&current, dev) : CUDA_ERROR_INVALID_VALUE;
}

CUDA_API(cuMemPoolCreate, CUmemoryPool *pool, const CUmemPoolProps *properties)
{
	ENTER();
	if (!pool || !properties || properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (properties->handleTypes)
		return CUDA_ERROR_NOT_SUPPORTED;
	*pool = malloc(1);
	return *pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUDA_API(cuMemPoolDestroy, CUmemoryPool pool)
{
	ENTER();
	if (!pool || pool == (CUmemoryPool)&default_pool)
		return CUDA_ERROR_INVALID_VALUE;
	free(pool);
	return CUDA_SUCCESS;
}

CUDA_API(cuMemPoolTrimTo, CUmemoryPool pool, size_t keep)
{
	ENTER();
	return pool ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Attributes below 4 are int switches, from there on counters of bytes. */
CUDA_API(cuMemPoolGetAttribute, CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	ENTER();
	if (!pool || !value || attribute < 1 || attribute > 8)
		return CUDA_ERROR_INVALID_VALUE;
	if (attribute < 4)
		*(int *)value = 1;
	else
		*(cuuint64_t *)value = 0;
	return CUDA_SUCCESS;
}

CUDA_API(cuMemPoolSetAttribute, CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	ENTER();
	return pool && value && attribute >= 1 && attribute <= 8 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
