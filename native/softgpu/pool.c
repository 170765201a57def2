// SPDX-License-Identifier: Apache-2.0
/* Stream-ordered allocation. Memory is there at once, and goes when the stream comes to it. */
#include "softgpu.h"

#include <stdlib.h>

enum { REUSE_LAST = 3, RELEASE_THRESHOLD, RESERVED, RESERVED_HIGH, USED, USED_HIGH };

struct pool {
	uint64_t attributes[USED_HIGH + 1];
};

static struct pool default_pool = { { 0, 1, 1, 1 } };

static struct pool *of(CUmemoryPool handle)
{
	return (struct pool *)handle;
}

static void raise_to(uint64_t *high, uint64_t now)
{
	if (now > *high)
		*high = now;
}

/* Called with memory_lock held. */
static void book(struct pool *pool, struct block *block)
{
	uint64_t *a = pool->attributes;

	block->pool = pool;
	a[USED] += block->size;
	a[RESERVED] += block->size;
	raise_to(&a[USED_HIGH], a[USED]);
	raise_to(&a[RESERVED_HIGH], a[RESERVED]);
}

/* A block is freed: called with memory_lock held. Pools keep nothing back. */
void pool_return(struct block *block)
{
	if (!block->pool)
		return;
	block->pool->attributes[USED] -= block->size;
	block->pool->attributes[RESERVED] -= block->size;
	block->pool = NULL;
}

static CUresult allocate(CUdeviceptr *out, size_t size, struct pool *pool, CUstream stream)
{
	ENTER_CONTEXT(ctx);
	struct block *block;
	struct stream *s;
	CUresult result;

	if (!out || !pool)
		return CUDA_ERROR_INVALID_VALUE;
	result = stream_resolve(ctx, stream, &s);
	*out = 0;
	if (result || !size)
		return result;
	pthread_mutex_lock(&memory_lock);
	result = heap_alloc(ctx, size, &block);
	if (!result) {
		book(pool, block);
		*out = block->address;
	}
	pthread_mutex_unlock(&memory_lock);
	return result;
}

CUDA_API(cuMemAllocAsync, CUdeviceptr *address, size_t size, CUstream stream)
{
	return allocate(address, size, &default_pool, stream);
}

CUDA_API(cuMemAllocAsync_ptsz, CUdeviceptr *address, size_t size, CUstream stream)
{
	return allocate(address, size, &default_pool, per_thread(stream));
}

CUDA_API(cuMemAllocFromPoolAsync, CUdeviceptr *address, size_t size, CUmemoryPool pool, CUstream stream)
{
	return allocate(address, size, of(pool), stream);
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

	result = stream_resolve(ctx, stream, &s);
	if (result || !address)
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
	struct pool *made;

	if (!pool || !properties || properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE || properties->location.id != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (properties->handleTypes)
		return CUDA_ERROR_NOT_SUPPORTED;
	made = malloc(sizeof(*made));
	if (made)
		*made = (struct pool){ { 0, 1, 1, 1 } };
	*pool = (CUmemoryPool)made;
	return *pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Memory that is still in use leaves its books. */
static void leave_books(struct pool *pool)
{
	pthread_mutex_lock(&memory_lock);
	for (size_t i = 0; i < span_count; i++) {
		for (struct block *b = spans[i]->blocks; b; b = b->next) {
			if (b->pool == pool)
				b->pool = NULL;
		}
	}
	pthread_mutex_unlock(&memory_lock);
}

CUDA_API(cuMemPoolDestroy, CUmemoryPool pool)
{
	ENTER();
	if (!pool || of(pool) == &default_pool)
		return CUDA_ERROR_INVALID_VALUE;
	leave_books(of(pool));
	free(pool);
	return CUDA_SUCCESS;
}

CUDA_API(cuMemPoolTrimTo, CUmemoryPool pool, size_t keep)
{
	ENTER();
	return pool ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The first attributes are int switches, the others counters of bytes. */
CUDA_API(cuMemPoolGetAttribute, CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	ENTER();
	if (!pool || !value || attribute < 1 || attribute > USED_HIGH)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&memory_lock);
	if (attribute <= REUSE_LAST)
		*(int *)value = (int)of(pool)->attributes[attribute];
	else
		*(cuuint64_t *)value = of(pool)->attributes[attribute];
	pthread_mutex_unlock(&memory_lock);
	return CUDA_SUCCESS;
}

/* High-water marks can only be reset. */
CUDA_API(cuMemPoolSetAttribute, CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	ENTER();
	uint64_t number;

	if (!pool || !value || attribute < 1 || attribute > USED_HIGH || attribute == RESERVED ||
	    attribute == USED)
		return CUDA_ERROR_INVALID_VALUE;
	number = attribute <= REUSE_LAST ? (uint64_t)*(int *)value : *(cuuint64_t *)value;
	if ((attribute == RESERVED_HIGH || attribute == USED_HIGH) && number)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&memory_lock);
	of(pool)->attributes[attribute] = number;
	pthread_mutex_unlock(&memory_lock);
	return CUDA_SUCCESS;
}
