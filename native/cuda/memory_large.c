// SPDX-License-Identifier: Apache-2.0
/* Allocations with a handle of their own. */
#include "memory.h"

struct large {
	struct region region;
	struct backing *backing;
	uint64_t asked, id;
	uint32_t context;
	bool going;
};

static struct pool larges = { .size = sizeof(struct large) };

CUresult large_alloc(struct gpu *gpu, struct context *context, size_t asked, CUdeviceptr *address)
{
	uint64_t size = (asked + GRANULE - 1) / GRANULE * GRANULE;
	struct backing *backing = gpu_backing(gpu, size, 0);
	struct large *large;

	if (!backing)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memory_lock();
	large = pool_take(&larges);
	if (large) {
		backing->used = asked;
		*large = (struct large){
			.region = { REGION_LARGE, gpu, backing->mappings->address },
			.backing = backing,
			.asked = asked,
			.id = backing->mappings->id,
			.context = context_index(context),
		};
		window_put(&gpu->window, large->region.address, size, large);
	}
	memory_unlock();
	if (!large) {
		gpu_backing_free(gpu, backing);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*address = large->region.address;
	return CUDA_SUCCESS;
}

static struct large *of(struct region *region)
{
	return (struct large *)region; /* its first member */
}

bool large_find(struct region *region, uint64_t address, struct block *block)
{
	struct large *large = of(region);

	if (large->going)
		return false;
	*block = (struct block){ region, 0, large->context, region->address, large->asked, large->id };
	return true;
}

void large_take(const struct block *block)
{
	of(block->region)->going = true;
}

void large_keep(const struct block *block)
{
	of(block->region)->going = false;
}

void large_give_back(const struct block *block)
{
	struct large *large = of(block->region);
	struct gpu *gpu = large->region.gpu;

	memory_lock();
	window_put(&gpu->window, large->region.address, large->backing->size, NULL);
	memory_unlock();
	gpu_backing_free(gpu, large->backing);
	memory_lock();
	pool_give(&larges, large);
	memory_unlock();
}
