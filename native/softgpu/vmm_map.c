// SPDX-License-Identifier: Apache-2.0
/* Virtual memory management: addresses, and memory at them. */
#include "softgpu.h"

#include <stdlib.h>
#include <sys/mman.h>

CUDA_API(cuMemAddressReserve, CUdeviceptr *address, size_t size, size_t alignment, CUdeviceptr hint,
	 unsigned long long flags)
{
	ENTER();
	struct span *span;
	void *at, *shadow;

	if (!address || !size || size % GRANULARITY || (alignment & (alignment - 1)) || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (alignment < GRANULARITY)
		alignment = GRANULARITY;
	at = span_reserve(size, alignment, hint);
	shadow = at ? span_reserve(size, GRANULARITY, 0) : NULL;
	span = shadow ? calloc(1, sizeof(*span)) : NULL;
	if (!span) {
		if (at)
			munmap(at, size);
		if (shadow)
			munmap(shadow, size);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	span->kind = SPAN_RESERVED;
	span->address = (uint64_t)at;
	span->size = span->asked = size;
	span->shadow = (char *)shadow - (char *)at;
	pthread_mutex_lock(&memory_lock);
	span_add(span);
	pthread_mutex_unlock(&memory_lock);
	*address = span->address;
	return CUDA_SUCCESS;
}

CUDA_API(cuMemAddressFree, CUdeviceptr address, size_t size)
{
	ENTER();
	struct span *span;
	bool good;

	pthread_mutex_lock(&memory_lock);
	span = span_find(address);
	good = span && span->kind == SPAN_RESERVED && span->address == address && span->size == size &&
	       !span->mappings;
	if (good)
		span_remove(span);
	pthread_mutex_unlock(&memory_lock);
	if (!good)
		return CUDA_ERROR_INVALID_VALUE;
	munmap((void *)address, size);
	munmap((char *)address + span->shadow, size);
	free(span);
	return CUDA_SUCCESS;
}

/* The place in the span's sorted list for a range that overlaps nothing; NULL if it does. */
static struct mapping **gap(struct span *span, uint64_t address, size_t size)
{
	struct mapping **at = &span->mappings;

	while (*at && (*at)->address + (*at)->size <= address)
		at = &(*at)->next;
	return *at && (*at)->address < address + size ? NULL : at;
}

static bool inside(const struct span *span, uint64_t address, size_t size)
{
	return span && span->kind == SPAN_RESERVED && size && size <= span->size - (address - span->address);
}

/* Called with memory_lock held. Mapped memory cannot be used before cuMemSetAccess. */
static CUresult map(uint64_t address, size_t size, CUmemGenericAllocationHandle handle)
{
	struct span *span = span_find(address);
	struct physical *physical = physical_find(handle);
	struct mapping *m, **at;

	if (!inside(span, address, size) || !physical || size > physical->size)
		return CUDA_ERROR_INVALID_VALUE;
	at = gap(span, address, size);
	if (!at)
		return CUDA_ERROR_INVALID_VALUE;
	m = calloc(1, sizeof(*m));
	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (shadow_map((char *)address + span->shadow, size, PROT_READ | PROT_WRITE, physical->fd) < 0) {
		free(m);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	m->address = address;
	m->size = size;
	m->physical = physical;
	m->next = *at;
	*at = m;
	physical->mappings++;
	return CUDA_SUCCESS;
}

CUDA_API(cuMemMap, CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
	 unsigned long long flags)
{
	ENTER();
	CUresult result;

	if (offset || flags || !size || size % GRANULARITY || address % GRANULARITY)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&memory_lock);
	result = map(address, size, handle);
	pthread_mutex_unlock(&memory_lock);
	return result;
}

/* Called with memory_lock held. The mappings that make up exactly this range: first one, or NULL. */
static struct mapping *exactly(struct span *span, uint64_t address, size_t size)
{
	struct mapping *first = span->mappings, *m;
	uint64_t end = address + size;

	while (first && first->address < address)
		first = first->next;
	for (m = first; m && m->address == address && address < end; m = m->next)
		address += m->size;
	return address == end ? first : NULL;
}

CUDA_API(cuMemUnmap, CUdeviceptr address, size_t size)
{
	ENTER();
	struct mapping *m = NULL, *next;
	uint64_t end = address + size;
	struct context *ctx;
	struct span *span;
	bool empty = false;

	if (!size || size % GRANULARITY || address % GRANULARITY)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context_current(&ctx))
		context_synchronize(ctx);
	pthread_mutex_lock(&memory_lock);
	span = span_find(address);
	if (inside(span, address, size)) {
		m = exactly(span, address, size);
		empty = gap(span, address, size) != NULL;
	}
	for (struct mapping *each = m; each && each->address < end; each = next) {
		next = each->next;
		mapping_drop(span, each);
	}
	pthread_mutex_unlock(&memory_lock);
	return m || empty ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static int protection(CUmemAccess_flags flags)
{
	return (flags & 1 ? PROT_READ : 0) | (flags & 2 ? PROT_WRITE : 0);
}

CUDA_API(cuMemSetAccess, CUdeviceptr address, size_t size, const CUmemAccessDesc *access, size_t count)
{
	ENTER();
	uint64_t end = address + size;
	struct mapping *m = NULL;
	struct span *span;

	if (!access || !count || !size)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || access[i].location.id != 0 ||
		    access[i].flags == 2 || (unsigned)access[i].flags > CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			return CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&memory_lock);
	span = span_find(address);
	if (inside(span, address, size))
		m = exactly(span, address, size);
	for (struct mapping *each = m; each && each->address < end; each = each->next)
		each->access = protection(access[count - 1].flags);
	pthread_mutex_unlock(&memory_lock);
	return m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUDA_API(cuMemGetAccess, unsigned long long *flags, const CUmemLocation *location, CUdeviceptr address)
{
	ENTER();
	struct mapping *m;
	struct span *span;

	if (!flags || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE || location->id)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = 0;
	pthread_mutex_lock(&memory_lock);
	span = span_find(address);
	for (m = span ? span->mappings : NULL; m; m = m->next) {
		if (address >= m->address && address < m->address + m->size)
			*flags = m->access == (PROT_READ | PROT_WRITE) ? 3 : m->access ? 1 : 0;
	}
	pthread_mutex_unlock(&memory_lock);
	return span ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
