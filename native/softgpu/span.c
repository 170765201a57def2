// SPDX-License-Identifier: Apache-2.0
/* The table of address ranges that the device knows, sorted by address. */
#include "softgpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

struct span **spans;
size_t span_count;
static size_t span_room;

/* Index of the first span that ends above `address`. */
static size_t position(uint64_t address)
{
	size_t low = 0, high = span_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (spans[middle]->address + spans[middle]->size <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct span *span_find(uint64_t address)
{
	size_t at = position(address);

	return at < span_count && spans[at]->address <= address ? spans[at] : NULL;
}

/* Returns 0, -EEXIST if the range overlaps a known one, or -ENOMEM. */
int span_add(struct span *span)
{
	size_t at = position(span->address);

	if (at < span_count && spans[at]->address < span->address + span->size)
		return -EEXIST;
	if (span_count == span_room) {
		size_t room = span_room ? 2 * span_room : 64;
		struct span **more = realloc(spans, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		spans = more;
		span_room = room;
	}
	memmove(&spans[at + 1], &spans[at], (span_count - at) * sizeof(*spans));
	spans[at] = span;
	span_count++;
	span->id = memory_id();
	return 0;
}

void span_remove(struct span *span)
{
	size_t at = position(span->address);

	memmove(&spans[at], &spans[at + 1], (span_count - at - 1) * sizeof(*spans));
	span_count--;
}

uint64_t memory_id(void)
{
	static uint64_t last;

	return ++last;
}

static char *reserve_at(uint64_t at, size_t size)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
	char *p = mmap((void *)at, size, PROT_NONE, flags, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (p != (char *)at) {
		munmap(p, size);
		return NULL;
	}
	return p;
}

/* Addresses with nothing behind them; at the hint if that is free. NULL: none left. */
void *span_reserve(size_t size, size_t align, uint64_t hint)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	char *p, *start;

	if (hint && hint % align == 0 && (p = reserve_at(hint, size)))
		return p;
	p = mmap(NULL, size + align, PROT_NONE, flags, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	start = (char *)ALIGN_UP((uintptr_t)p, align);
	if (start > p)
		munmap(p, (size_t)(start - p));
	munmap(start + size, (size_t)(p + align - start));
	return start;
}

static bool mapped(const struct span *span, uint64_t address, size_t size, int access)
{
	uint64_t end = address + size;

	for (const struct mapping *m = span->mappings; m && address < end; m = m->next) {
		if (m->address + m->size <= address)
			continue;
		if (m->address > address || (m->access & access) != access)
			return false;
		address = m->address + m->size;
	}
	return address >= end;
}

/* Where the CPU finds what the device sees at `address`; NULL: the device would fault. */
void *memory_at(uint64_t address, size_t size, int access)
{
	struct span *span;
	void *at = NULL;

	pthread_mutex_lock(&memory_lock);
	span = span_find(address);
	if (span && size <= span->size - (address - span->address) &&
	    (span->kind != SPAN_RESERVED || mapped(span, address, size, access)))
		at = (void *)(address + (uint64_t)span->shadow);
	pthread_mutex_unlock(&memory_lock);
	return at;
}

/* Is it memory that the device knows, all of it? */
bool memory_known(uint64_t address, size_t size)
{
	return memory_at(address, size, 0) != NULL;
}

bool memory_pinned(uint64_t address, size_t size)
{
	struct span *span;
	bool pinned;

	pthread_mutex_lock(&memory_lock);
	span = span_find(address);
	pinned = span && (span->kind == SPAN_HOST || span->kind == SPAN_REGISTERED) &&
		 size <= span->size - (address - span->address);
	pthread_mutex_unlock(&memory_lock);
	return pinned;
}
