// SPDX-License-Identifier: Apache-2.0
/* Virtual memory management: memory by handle. */
#include "softgpu.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static CUresult check(const CUmemAllocationProp *p)
{
	if (!p || p->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (p->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (p->location.id != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	if (p->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	return CUDA_SUCCESS;
}

/* Called with memory_lock held. */
struct physical *physical_find(CUmemGenericAllocationHandle handle)
{
	struct physical *p = physicals;

	while (p && (uint64_t)p != handle)
		p = p->next;
	return p && p->references && !p->heap ? p : NULL;
}

CUDA_API(cuMemGetAllocationGranularity, size_t *granularity, const CUmemAllocationProp *properties,
	 CUmemAllocationGranularity_flags option)
{
	ENTER();
	CUresult result = check(properties);

	if (!granularity || (unsigned)option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
		return CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*granularity = GRANULARITY;
	return result;
}

CUDA_API(cuMemCreate, CUmemGenericAllocationHandle *handle, size_t size,
	 const CUmemAllocationProp *properties, unsigned long long flags)
{
	ENTER();
	struct physical *physical;
	CUresult result = check(properties);

	if (!handle || !size || size % GRANULARITY || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (result)
		return result;
	pthread_mutex_lock(&memory_lock);
	result = physical_make(size, true, &physical);
	if (!result) {
		physical->references = 1;
		physical->properties = *properties;
		*handle = (uint64_t)physical;
	}
	pthread_mutex_unlock(&memory_lock);
	return result;
}

/* Called with memory_lock held. */
static void release(struct physical *physical)
{
	if (!physical->references && !physical->mappings)
		physical_free(physical);
}

CUDA_API(cuMemRelease, CUmemGenericAllocationHandle handle)
{
	ENTER();
	struct physical *physical;

	pthread_mutex_lock(&memory_lock);
	physical = physical_find(handle);
	if (physical) {
		physical->references--;
		release(physical);
	}
	pthread_mutex_unlock(&memory_lock);
	return physical ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUDA_API(cuMemExportToShareableHandle, void *out, CUmemGenericAllocationHandle handle,
	 CUmemAllocationHandleType type, unsigned long long flags)
{
	ENTER();
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	struct physical *physical;
	int fd = -1;

	if (!out || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&memory_lock);
	physical = physical_find(handle);
	/* What was imported cannot be exported again: so on driver 580. */
	if (physical && !physical->imported && (physical->properties.requestedHandleTypes & type)) {
		fd = dup(physical->fd);
		result = fd < 0 ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&memory_lock);
	if (!result)
		*(int *)out = fd;
	return result;
}

/* Only what an export gave; a descriptor says so itself. Without its seals it could shrink under us. */
static bool is_memory(int fd, size_t *size)
{
	const char memory[] = "/memfd:" MEMORY_NAME;
	char link[64], path[32];
	struct stat st;
	int seals;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size <= 0)
		return false;
	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || (seals & DEVICE_SEALS) != DEVICE_SEALS)
		return false;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	*size = (size_t)st.st_size;
	return readlink(path, link, sizeof(link)) >= (ssize_t)sizeof(memory) - 1 &&
	       memcmp(link, memory, sizeof(memory) - 1) == 0;
}

CUDA_API(cuMemImportFromShareableHandle, CUmemGenericAllocationHandle *handle, void *from,
	 CUmemAllocationHandleType type)
{
	ENTER();
	struct physical *physical;
	size_t size;
	int fd = (int)(intptr_t)from;

	if (!handle || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_memory(fd, &size))
		return CUDA_ERROR_UNKNOWN;
	physical = calloc(1, sizeof(*physical));
	if (!physical)
		return CUDA_ERROR_OUT_OF_MEMORY;
	physical->fd = fd_lift(dup(fd));
	if (physical->fd < 0) {
		free(physical);
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
	physical->size = size;
	physical->references = 1;
	physical->imported = true;
	physical->properties = (CUmemAllocationProp){
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	pthread_mutex_lock(&memory_lock);
	physical_link(physical);
	pthread_mutex_unlock(&memory_lock);
	*handle = (uint64_t)physical;
	return CUDA_SUCCESS;
}

CUDA_API(cuMemGetAllocationPropertiesFromHandle, CUmemAllocationProp *properties,
	 CUmemGenericAllocationHandle handle)
{
	ENTER();
	struct physical *physical;

	if (!properties)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&memory_lock);
	physical = physical_find(handle);
	if (physical)
		*properties = physical->properties;
	pthread_mutex_unlock(&memory_lock);
	return physical ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Called with memory_lock held. */
void mapping_drop(struct span *span, struct mapping *mapping)
{
	struct physical *physical = mapping->physical;
	struct mapping **at = &span->mappings;

	while (*at != mapping)
		at = &(*at)->next;
	*at = mapping->next;
	shadow_clear((char *)mapping->address + span->shadow, mapping->size);
	free(mapping);
	physical->mappings--;
	release(physical);
}

CUDA_API(cuMemRetainAllocationHandle, CUmemGenericAllocationHandle *handle, void *address)
{
	ENTER();
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	struct mapping *m;
	struct span *span;

	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&memory_lock);
	span = span_find((uint64_t)address);
	for (m = span ? span->mappings : NULL; m; m = m->next) {
		if ((uint64_t)address < m->address || (uint64_t)address >= m->address + m->size)
			continue;
		m->physical->references++;
		*handle = (uint64_t)m->physical;
		result = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&memory_lock);
	return result;
}
