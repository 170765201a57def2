// SPDX-License-Identifier: Apache-2.0
/* Small allocations share handles: a slab is one handle, of a size that grows with their number; each of
 * its parts of one granule, a chunk, holds blocks of one size class. */
#include "memory.h"

#define ALIGNMENT 512
#define SLAB_MOST 16 /* granules */
#define KEEP_MOST 2  /* granules of an empty slab that is worth keeping */
#define WORDS (GRANULE / ALIGNMENT / 64)

enum { FREE, USED, GOING };

struct owner {
	uint32_t asked;
	uint16_t context;
	uint16_t state;
	uint64_t id;
};

struct slab {
	struct slab *next;
	struct backing *backing;
	uint32_t granules;
	uint32_t vacant; /* a bit for each that holds no chunk */
};

struct chunk {
	struct region region;
	struct slab *slab;
	struct chunk *next, *previous; /* with room, in the same class */
	uint32_t class, size;	       /* size of a block */
	uint32_t blocks, used;
	uint64_t taken[WORDS];
	struct owner entries[];
};

static struct pool slabs = { .size = sizeof(struct slab) };

/* Classes in steps of an eighth to a quarter of the size; `units` of 512 bytes, at most 2048. */
static uint32_t class_of(size_t asked, uint32_t *size)
{
	uint32_t units = (asked + ALIGNMENT - 1) / ALIGNMENT, last = units - 1, shift;

	if (units <= 8) {
		*size = units * ALIGNMENT;
		return units - 1;
	}
	shift = 31 - __builtin_clz(last) - 2;
	*size = (((last >> shift) + 1) << shift) * ALIGNMENT;
	return 8 + (shift - 1) * 4 + (last >> shift & 3);
}

static size_t memory_of(uint32_t blocks)
{
	return sizeof(struct chunk) + blocks * sizeof(struct owner);
}

static void room_add(struct gpu *gpu, struct chunk *chunk)
{
	struct chunk **head = &gpu->room[chunk->class];

	chunk->previous = NULL;
	chunk->next = *head;
	if (*head)
		(*head)->previous = chunk;
	*head = chunk;
}

static void room_remove(struct gpu *gpu, struct chunk *chunk)
{
	if (chunk->previous)
		chunk->previous->next = chunk->next;
	else
		gpu->room[chunk->class] = chunk->next;
	if (chunk->next)
		chunk->next->previous = chunk->previous;
}

/* Under the lock: a chunk in a vacant granule of some slab; NULL: there is none, or no memory. */
static struct chunk *make_chunk(struct gpu *gpu, uint32_t class, uint32_t size)
{
	uint32_t blocks = GRANULE / size;
	struct slab *slab = gpu->slabs;
	struct chunk *chunk;
	int granule;

	while (slab && !slab->vacant)
		slab = slab->next;
	if (!slab)
		return NULL;
	chunk = gpu->spare[class] ? gpu->spare[class] : pages_take(memory_of(blocks));
	if (!chunk)
		return NULL;
	gpu->spare[class] = NULL;
	granule = __builtin_ctz(slab->vacant);
	slab->vacant &= slab->vacant - 1;
	*chunk = (struct chunk){
		.region = { REGION_CHUNK, gpu, slab->backing->mappings->address + granule * GRANULE },
		.slab = slab,
		.class = class,
		.size = size,
		.blocks = blocks,
	};
	window_put(&gpu->window, chunk->region.address, GRANULE, chunk);
	room_add(gpu, chunk);
	return chunk;
}

static struct block place(struct chunk *chunk, uint32_t index)
{
	const struct owner *entry = &chunk->entries[index];

	return (struct block){ .region = &chunk->region,
			       .index = index,
			       .context = entry->context,
			       .address = chunk->region.address + (uint64_t)index * chunk->size,
			       .asked = entry->asked,
			       .id = entry->id };
}

static uint32_t free_block(const struct chunk *chunk)
{
	uint32_t word = 0;

	while (chunk->taken[word] == UINT64_MAX)
		word++;
	return word * 64 + __builtin_ctzll(~chunk->taken[word]);
}

/* Under the lock. */
static bool take_block(struct gpu *gpu, const struct context *context, size_t asked, CUdeviceptr *address)
{
	uint32_t size, class = class_of(asked, &size), index;
	struct chunk *chunk = gpu->room[class];

	if (!chunk)
		chunk = make_chunk(gpu, class, size);
	if (!chunk)
		return false;
	index = free_block(chunk);
	chunk->taken[index / 64] |= 1ull << index % 64;
	chunk->entries[index] = (struct owner){ asked, context_index(context), USED, memory_id() };
	chunk->slab->backing->used += asked;
	if (++chunk->used == chunk->blocks)
		room_remove(gpu, chunk);
	*address = place(chunk, index).address;
	return true;
}

/* As much again as there is, within bounds; less when that is not to be had. */
static struct backing *more_memory(struct gpu *gpu)
{
	uint32_t granules = 1;
	struct backing *backing;

	while (granules < SLAB_MOST && granules * GRANULE < gpu->slab_bytes)
		granules *= 2;
	for (; granules; granules /= 2) {
		backing = gpu_backing(gpu, granules * GRANULE, DIAPAUSE_MEMORY_SLAB);
		if (backing)
			return backing;
	}
	return NULL;
}

static bool make_slab(struct gpu *gpu)
{
	struct backing *backing = more_memory(gpu);
	struct slab *slab;

	if (!backing)
		return false;
	memory_lock();
	slab = pool_take(&slabs);
	if (slab) {
		*slab = (struct slab){ .next = gpu->slabs,
				       .backing = backing,
				       .granules = backing->size / GRANULE,
				       .vacant = (1u << backing->size / GRANULE) - 1 };
		gpu->slabs = slab;
		gpu->slab_bytes += backing->size;
	}
	memory_unlock();
	if (!slab)
		gpu_backing_free(gpu, backing);
	return slab;
}

CUresult slab_alloc(struct gpu *gpu, struct context *context, size_t asked, CUdeviceptr *address)
{
	bool taken;

	do {
		memory_lock();
		taken = take_block(gpu, context, asked, address);
		memory_unlock();
	} while (!taken && make_slab(gpu));
	return taken ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static struct chunk *of(struct region *region)
{
	return (struct chunk *)region; /* its first member */
}

bool slab_find(struct region *region, uint64_t address, struct block *block)
{
	struct chunk *chunk = of(region);
	uint32_t index = (address - region->address) / chunk->size;

	if (index >= chunk->blocks || chunk->entries[index].state != USED)
		return false;
	*block = place(chunk, index);
	return true;
}

void slab_take(const struct block *block)
{
	of(block->region)->entries[block->index].state = GOING;
}

void slab_keep(const struct block *block)
{
	of(block->region)->entries[block->index].state = USED;
}

/* Under the lock: the slab that is empty now and does not stay. */
static struct slab *leave(struct gpu *gpu, struct chunk *chunk)
{
	struct slab *slab = chunk->slab, **at = &gpu->slabs;
	uint32_t class = chunk->class;

	room_remove(gpu, chunk);
	window_put(&gpu->window, chunk->region.address, GRANULE, NULL);
	slab->vacant |= 1u << (chunk->region.address - slab->backing->mappings->address) / GRANULE;
	if (gpu->spare[class])
		pages_give(chunk, memory_of(chunk->blocks));
	else
		gpu->spare[class] = chunk;
	if (slab->vacant != (1u << slab->granules) - 1 ||
	    (slab->granules <= KEEP_MOST && gpu->slab_bytes == slab->backing->size))
		return NULL;
	while (*at != slab)
		at = &(*at)->next;
	*at = slab->next;
	gpu->slab_bytes -= slab->backing->size;
	return slab;
}

void slab_give_back(const struct block *block)
{
	struct chunk *chunk = of(block->region);
	struct gpu *gpu = chunk->region.gpu;
	struct slab *empty = NULL;

	memory_lock();
	chunk->taken[block->index / 64] &= ~(1ull << block->index % 64);
	chunk->entries[block->index].state = FREE;
	chunk->slab->backing->used -= block->asked;
	if (chunk->used-- == chunk->blocks)
		room_add(gpu, chunk);
	if (!chunk->used)
		empty = leave(gpu, chunk);
	memory_unlock();
	if (!empty)
		return;
	gpu_backing_free(gpu, empty->backing);
	memory_lock();
	pool_give(&slabs, empty);
	memory_unlock();
}

bool slab_next(struct region *region, uint32_t from, struct block *block)
{
	struct chunk *chunk = of(region);

	while (from < chunk->blocks && chunk->entries[from].state != USED)
		from++;
	if (from < chunk->blocks)
		*block = place(chunk, from);
	return from < chunk->blocks;
}

uint32_t slab_used(struct region *region)
{
	return of(region)->used;
}
