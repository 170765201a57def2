// SPDX-License-Identifier: Apache-2.0
/* Ranges of a window of addresses: first fit among those that were used, else fresh ones. */
#include "memory.h"

struct range {
	struct range *next; /* by address, never adjacent */
	uint64_t address, size;
};

static struct pool ranges = { .size = sizeof(struct range) };

bool window_make(struct window *window, void *granules, uint64_t base, uint64_t size)
{
	*window = (struct window){ .base = base, .size = size, .fresh = base, .granules = granules };
	return granules;
}

uint64_t window_take(struct window *window, uint64_t size)
{
	struct range **at = &window->free, *range;
	uint64_t address;

	while (*at && (*at)->size < size)
		at = &(*at)->next;
	range = *at;
	if (!range) {
		address = window->fresh;
		if (size > window->base + window->size - address)
			return 0;
		window->fresh += size;
		return address;
	}
	address = range->address;
	range->address += size;
	range->size -= size;
	if (!range->size) {
		*at = range->next;
		pool_give(&ranges, range);
	}
	return address;
}

/* The last free range, if it reaches up to the fresh ones, becomes fresh again. */
static void lower_fresh(struct window *window)
{
	struct range **at = &window->free;

	while (*at && (*at)->next)
		at = &(*at)->next;
	if (*at && (*at)->address + (*at)->size == window->fresh) {
		window->fresh = (*at)->address;
		pool_give(&ranges, *at);
		*at = NULL;
	}
}

/* Without memory for a record the addresses are lost, of which there are plenty. */
void window_give(struct window *window, uint64_t address, uint64_t size)
{
	struct range **at = &window->free, *before = NULL, *range;

	while (*at && (*at)->address < address) {
		before = *at;
		at = &(*at)->next;
	}
	if (before && before->address + before->size == address) {
		before->size += size;
		range = before;
	} else {
		range = pool_take(&ranges);
		if (!range)
			return;
		*range = (struct range){ *at, address, size };
		*at = range;
	}
	if (range->next && range->address + range->size == range->next->address) {
		struct range *next = range->next;

		range->size += next->size;
		range->next = next->next;
		pool_give(&ranges, next);
	}
	if (address + size == window->fresh)
		lower_fresh(window);
}

void window_put(struct window *window, uint64_t address, uint64_t size, void *region)
{
	for (uint64_t at = address; at < address + size; at += GRANULE)
		window->granules[(at - window->base) / GRANULE] = region;
}
