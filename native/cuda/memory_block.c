// SPDX-License-Identifier: Apache-2.0
/* Allocations of the program by address, wherever they lie in a window. */
#include "memory.h"

#include "gate.h"

struct deferred {
	struct deferred *next;
	struct block block;
};

static struct pool records = { .size = sizeof(struct deferred) };
static struct deferred *deferred;

static bool find_in(struct region *region, uint64_t address, struct block *block)
{
	return region->kind == REGION_LARGE ? large_find(region, address, block)
					    : slab_find(region, address, block);
}

enum where block_find(uint64_t address, struct block *block)
{
	struct gpu *gpu = gpu_of(address);
	struct region *region;

	if (!gpu)
		return place_find(address) ? IN_MAPPING : NOWHERE;
	region = gpu->window.granules[(address - gpu->window.base) / GRANULE];
	return region && find_in(region, address, block) ? IN_BLOCK : IN_WINDOW;
}

static void take(const struct block *block)
{
	if (block->region->kind == REGION_LARGE)
		large_take(block);
	else
		slab_take(block);
}

bool block_take(uint64_t address, struct block *block)
{
	bool found;

	memory_lock();
	found = block_find(address, block) == IN_BLOCK && block->address == address;
	if (found)
		take(block);
	memory_unlock();
	return found;
}

void block_keep(const struct block *block)
{
	memory_lock();
	if (block->region->kind == REGION_LARGE)
		large_keep(block);
	else
		slab_keep(block);
	memory_unlock();
}

void block_give_back(const struct block *block)
{
	if (block->region->kind == REGION_LARGE)
		large_give_back(block);
	else
		slab_give_back(block);
}

/* The GPU may be using it, and nobody may wait for the GPU: while a stream captures, that would end the
 * capture. Without memory for the record the block is lost, never given away too early. */
void block_defer(const struct block *block)
{
	struct deferred *record;

	memory_lock();
	record = pool_take(&records);
	if (record) {
		*record = (struct deferred){ deferred, *block };
		deferred = record;
	}
	memory_unlock();
}

static bool next_deferred(struct block *block)
{
	struct deferred *record;

	memory_lock();
	record = deferred;
	if (record) {
		*block = record->block;
		deferred = record->next;
		pool_give(&records, record);
	}
	memory_unlock();
	return record;
}

/* A context that is no more has nothing to wait for. */
void blocks_reap(void)
{
	struct block block;

	while (deferred && !gate_captures() && next_deferred(&block)) {
		CUcontext handle = context_at(block.context)->handle;

		if (handle)
			context_synchronize(handle);
		block_give_back(&block);
	}
}

/* Under the lock: the first block of the context at or above `from`. */
static bool next_of(struct gpu *gpu, uint32_t context, uint64_t *from, struct block *block)
{
	struct window *window = &gpu->window;

	while (*from < window->fresh) {
		struct region *region = window->granules[(*from - window->base) / GRANULE];
		uint64_t end = *from / GRANULE * GRANULE + GRANULE;
		uint32_t index = 0;

		if (region && region->kind == REGION_CHUNK) {
			while (slab_next(region, index, block)) {
				if (block->address >= *from && block->context == context)
					return true;
				index = block->index + 1;
			}
		} else if (region && region->address == *from && large_find(region, *from, block) &&
			   block->context == context) {
			return true;
		}
		*from = end;
	}
	return false;
}

void blocks_of_context_free(struct context *context)
{
	for (int i = 0; i < GPUS; i++) {
		struct gpu *gpu = gpu_at(i);
		uint64_t from = gpu->window.base;
		struct block block;

		for (;;) {
			bool found;

			memory_lock();
			found = next_of(gpu, context_index(context), &from, &block);
			if (found)
				take(&block);
			memory_unlock();
			if (!found)
				break;
			block_give_back(&block);
		}
	}
}

uint64_t blocks_count(void)
{
	uint64_t n = 0;

	for (int i = 0; i < GPUS; i++) {
		struct window *window = &gpu_at(i)->window;

		for (uint64_t at = window->base; at < window->fresh; at += GRANULE) {
			struct region *region = window->granules[(at - window->base) / GRANULE];

			if (region && region->kind == REGION_LARGE)
				n += region->address == at;
			else if (region)
				n += slab_used(region);
		}
	}
	return n;
}

void blocks_forget(void)
{
	deferred = NULL;
}
