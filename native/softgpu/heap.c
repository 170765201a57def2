// SPDX-License-Identifier: Apache-2.0
/* The memory behind cuMemAlloc: small requests share chunks of 2 MiB, as on hardware; larger ones
 * have a chunk of their own. Called with memory_lock held, but for heap_forget. */
#include "softgpu.h"

#include <stdlib.h>
#include <sys/mman.h>

#define SMALL (GRANULARITY / 2)

static CUresult make_chunk(size_t size, struct span **out)
{
	struct span *span = calloc(1, sizeof(*span));
	struct block *block = calloc(1, sizeof(*block));
	void *at = span_reserve(size, GRANULARITY, 0);
	void *shadow = span_reserve(size, GRANULARITY, 0);
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

	if (!span || !block || !at || !shadow)
		goto fail;
	result = physical_make(size, false, &span->physical);
	if (result)
		goto fail;
	result = CUDA_ERROR_OUT_OF_MEMORY;
	span->kind = SPAN_HEAP;
	span->address = (uint64_t)at;
	span->size = size;
	span->shadow = (char *)shadow - (char *)at;
	span->largest = size;
	span->blocks = block;
	block->address = span->address;
	block->size = size;
	if (shadow_map(shadow, size, PROT_READ | PROT_WRITE, -1) < 0 || span_add(span) < 0)
		goto fail;
	span->physical->heap = shadow;
	*out = span;
	return CUDA_SUCCESS;
fail:
	if (span && span->physical)
		physical_free(span->physical);
	if (at)
		munmap(at, size);
	if (shadow)
		munmap(shadow, size);
	free(span);
	free(block);
	return result;
}

static void free_chunk(struct span *span)
{
	munmap((void *)span->address, span->size);
	munmap((char *)span->address + span->shadow, span->size);
	physical_free(span->physical);
	span_remove(span);
	free(span->blocks);
	free(span);
}

static size_t largest(const struct span *span)
{
	size_t most = 0;

	for (const struct block *b = span->blocks; b; b = b->next) {
		if (!b->asked && b->size > most)
			most = b->size;
	}
	return most;
}

/* First fit. The rest of the block stays free, except what could serve nobody. */
static struct block *take(struct span *span, size_t size)
{
	struct block *b = span->blocks, *rest;

	while (b && (b->asked || b->size < size))
		b = b->next;
	if (!b)
		return NULL;
	if (b->size > size) {
		rest = calloc(1, sizeof(*rest));
		if (!rest)
			return NULL;
		rest->address = b->address + size;
		rest->size = b->size - size;
		rest->next = b->next;
		b->next = rest;
		b->size = size;
	}
	b->asked = 1;
	span->largest = largest(span);
	return b;
}

static struct block *find_room(size_t size)
{
	struct block *block = NULL;

	for (size_t i = 0; i < span_count && !block; i++) {
		if (spans[i]->kind == SPAN_HEAP && spans[i]->size == GRANULARITY && spans[i]->largest >= size)
			block = take(spans[i], size);
	}
	return block;
}

CUresult heap_alloc(struct context *ctx, size_t asked, struct block **out)
{
	size_t size;
	struct block *block;
	struct span *span;
	CUresult result;

	if (asked > device.memory)
		return CUDA_ERROR_OUT_OF_MEMORY;
	size = ALIGN_UP(asked, asked < SMALL ? ALLOCATION_ALIGN : GRANULARITY);
	block = size < GRANULARITY ? find_room(size) : NULL;
	if (!block) {
		result = make_chunk(ALIGN_UP(size, GRANULARITY), &span);
		if (result)
			return result;
		block = take(span, size);
		if (!block)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	block->asked = asked;
	block->ctx = ctx;
	block->pool = NULL;
	block->id = memory_id();
	*out = block;
	return CUDA_SUCCESS;
}

/* The block in use that holds `address`. */
struct block *heap_block(uint64_t address)
{
	struct span *span = span_find(address);
	struct block *b;

	if (!span || span->kind != SPAN_HEAP)
		return NULL;
	for (b = span->blocks; b && b->address + b->size <= address; b = b->next)
		;
	return b && b->asked ? b : NULL;
}

static void join(struct block *block)
{
	struct block *next = block->next;

	if (!next || block->asked || next->asked)
		return;
	block->size += next->size;
	block->next = next->next;
	free(next);
}

CUresult heap_free(uint64_t address)
{
	struct span *span = span_find(address);
	struct block *b, *previous = NULL;

	if (!span || span->kind != SPAN_HEAP)
		return CUDA_ERROR_INVALID_VALUE;
	for (b = span->blocks; b && b->address != address; b = b->next)
		previous = b;
	if (!b || !b->asked)
		return CUDA_ERROR_INVALID_VALUE;
	pool_return(b);
	b->asked = 0;
	b->ctx = NULL;
	join(b);
	if (previous)
		join(previous);
	span->largest = largest(span);
	if (span->largest == span->size)
		free_chunk(span);
	return CUDA_SUCCESS;
}

static bool forget_one(struct context *ctx)
{
	for (size_t i = 0; i < span_count; i++) {
		for (struct block *b = spans[i]->blocks; b; b = b->next) {
			if (b->asked && b->ctx == ctx) {
				heap_free(b->address);
				return true;
			}
		}
	}
	return false;
}

/* A context goes, with all its memory. */
void heap_forget(struct context *ctx)
{
	pthread_mutex_lock(&memory_lock);
	while (forget_one(ctx))
		;
	pthread_mutex_unlock(&memory_lock);
}
