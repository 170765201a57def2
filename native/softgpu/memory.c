// SPDX-License-Identifier: Apache-2.0
/* cuMemAlloc and what belongs to it. */
#include "softgpu.h"

static CUresult allocate(struct context *ctx, CUdeviceptr *out, size_t size)
{
	struct block *block;
	CUresult result;

	if (!out || !size)
		return CUDA_ERROR_INVALID_VALUE;
	result = graph_unsafe(ctx);
	if (result)
		return result;
	pthread_mutex_lock(&memory_lock);
	result = heap_alloc(ctx, size, &block);
	if (!result)
		*out = block->address;
	pthread_mutex_unlock(&memory_lock);
	return result;
}

CUDA_API(cuMemAlloc_v2, CUdeviceptr *address, size_t size)
{
	ENTER_CONTEXT(ctx);
	return allocate(ctx, address, size);
}

CUDA_API(cuMemAllocPitch_v2, CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
	 unsigned int element)
{
	ENTER_CONTEXT(ctx);
	CUresult result;

	if (!pitch || !width || !height || (element != 4 && element != 8 && element != 16))
		return CUDA_ERROR_INVALID_VALUE;
	if (width > device.memory)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = allocate(ctx, address, ALIGN_UP(width, ALLOCATION_ALIGN) * height);
	if (!result)
		*pitch = ALIGN_UP(width, ALLOCATION_ALIGN);
	return result;
}

static struct context *owner_of(uint64_t address)
{
	struct block *block;
	struct context *ctx;

	pthread_mutex_lock(&memory_lock);
	block = heap_block(address);
	ctx = block ? block->ctx : NULL;
	pthread_mutex_unlock(&memory_lock);
	return ctx;
}

/* Waits for the device, and programs rely on it. */
CUDA_API(cuMemFree_v2, CUdeviceptr address)
{
	ENTER();
	struct context *ctx;
	struct span *span;
	CUresult result = context_current(&ctx);

	if (result == CUDA_ERROR_INVALID_CONTEXT) { /* none is needed */
		ctx = owner_of(address);
		result = CUDA_SUCCESS;
	}
	if (!result && ctx && address)
		result = graph_unsafe(ctx);
	if (result || !address)
		return result;
	if (ctx)
		context_synchronize(ctx);
	pthread_mutex_lock(&memory_lock);
	span = span_find(address);
	if (span && span->kind == SPAN_MANAGED)
		result = managed_free(span, address);
	else
		result = heap_free(address);
	pthread_mutex_unlock(&memory_lock);
	return result;
}

/* Polls: see notify.c. */
CUDA_API(cuMemGetInfo_v2, size_t *unused, size_t *total)
{
	struct context *ctx;
	CUresult result = gate_peek();

	if (!result)
		result = context_current(&ctx);
	if (result)
		return result;
	if (!unused || !total)
		return CUDA_ERROR_INVALID_VALUE;
	*unused = memory_free();
	*total = device.memory;
	return CUDA_SUCCESS;
}

/* Called with memory_lock held. */
static bool range_of(uint64_t address, uint64_t *base, size_t *size)
{
	struct span *span = span_find(address);
	struct block *block;

	if (!span)
		return false;
	if (span->kind == SPAN_HEAP) {
		block = heap_block(address);
		if (!block)
			return false;
		*base = block->address;
		*size = block->asked;
		return true;
	}
	if (span->kind != SPAN_RESERVED) {
		*base = span->address;
		*size = span->asked;
		return true;
	}
	for (struct mapping *m = span->mappings; m; m = m->next) {
		if (address >= m->address && address < m->address + m->size) {
			*base = m->address;
			*size = m->size;
			return true;
		}
	}
	return false;
}

CUDA_API(cuMemGetAddressRange_v2, CUdeviceptr *base, size_t *size, CUdeviceptr address)
{
	ENTER_CONTEXT(ctx);
	uint64_t start;
	size_t length;
	bool found;

	pthread_mutex_lock(&memory_lock);
	found = range_of(address, &start, &length);
	pthread_mutex_unlock(&memory_lock);
	if (!found)
		return CUDA_ERROR_NOT_FOUND;
	if (base)
		*base = start;
	if (size)
		*size = length;
	return CUDA_SUCCESS;
}
