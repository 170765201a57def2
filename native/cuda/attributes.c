// SPDX-License-Identifier: Apache-2.0
/* What a pointer is. The driver judges the call and answers what is the same for memory of every kind;
 * what it would have said otherwise of memory from cuMemAlloc is put in its place.
 *
 * CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE stays 0: cuIpcGetMemHandle does refuse ours. */
#include "memory.h"

#include "gate.h"

#define IS_HW_DECOMPRESS_CAPABLE 21 /* CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE */
#define OURS (1ull << 62)	    /* ids of buffers: the driver counts its own from 1 */

#define NOTHING ((void *)1) /* an address where nothing of the program's is */

struct facts {
	enum where where;
	struct block block;
	uint64_t id;
	bool decompresses;	      /* IN_BLOCK: the device has a unit for it */
	driver_properties properties; /* IN_MAPPING */
};

static struct facts look(uint64_t address)
{
	struct facts facts = { .where = NOWHERE };
	struct mapping *mapping;

	memory_lock();
	facts.where = block_find(address, &facts.block);
	if (facts.where == IN_BLOCK) {
		facts.id = OURS | facts.block.id;
		facts.decompresses = facts.block.region->gpu->decompresses;
	} else if (facts.where == IN_MAPPING) {
		mapping = place_find(address);
		facts.id = OURS | mapping->id;
		facts.properties = mapping->backing->properties;
	}
	memory_unlock();
	return facts;
}

static void improve(const struct facts *facts, CUpointer_attribute attribute, void *data)
{
	bool ours = facts->where == IN_BLOCK;

	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		if (ours)
			*(CUcontext *)data = context_at(facts->block.context)->handle;
		break;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		*(unsigned long long *)data = facts->id;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		if (ours)
			*(CUdeviceptr *)data = facts->block.address;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		if (ours)
			*(size_t *)data = facts->block.asked;
		break;
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		if (ours)
			*(CUdeviceptr *)data = facts->block.address / GRANULE * GRANULE;
		break;
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: /* the driver, too, shares 2 MiB among small ones */
		if (ours)
			*(size_t *)data = (facts->block.asked + GRANULE - 1) / GRANULE * GRANULE;
		break;
	case IS_HW_DECOMPRESS_CAPABLE:
		if (ours && !facts->decompresses)
			*(bool *)data = true; /* said of all memory of a device that has no such unit */
		break;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		*(unsigned long long *)data =
			ours ? 0 : (unsigned long long)facts->properties.requestedHandleTypes;
		break;
	default:
		break;
	}
}

static bool is_ours(const struct facts *facts)
{
	return facts->where == IN_BLOCK || facts->where == IN_MAPPING;
}

/* Of memory by handle the driver knows no context: that is its answer, and the only one that fails. */
static bool only_context_fails(const struct facts *facts, CUpointer_attribute attribute, CUresult result)
{
	return facts->where == IN_BLOCK && attribute == CU_POINTER_ATTRIBUTE_CONTEXT &&
	       result == CUDA_ERROR_INVALID_VALUE;
}

static CUresult get(void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
	struct facts facts = look(address);
	CUresult result;

	if (facts.where == IN_WINDOW)
		address = 1; /* nothing of the program's is there, nor here */
	result = driver_PointerGetAttribute(data, attribute, address);
	if (data && only_context_fails(&facts, attribute, result))
		result = CUDA_SUCCESS;
	if (result == CUDA_SUCCESS && is_ours(&facts))
		improve(&facts, attribute, data);
	return result;
}

CUresult replaced_cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr address);
CUresult replaced_cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
	CUresult result;

	gate_enter();
	result = get(data, attribute, address);
	gate_leave();
	return result;
}

CUresult replaced_cuPointerGetAttributes(unsigned int n, CUpointer_attribute *attributes, void **data,
					 CUdeviceptr address);
CUresult replaced_cuPointerGetAttributes(unsigned int n, CUpointer_attribute *attributes, void **data,
					 CUdeviceptr address)
{
	struct facts facts;
	CUresult result;

	gate_enter();
	facts = look(address);
	result = driver_PointerGetAttributes(n, attributes, data, facts.where == IN_WINDOW ? 1 : address);
	for (unsigned int i = 0; result == CUDA_SUCCESS && is_ours(&facts) && i < n; i++)
		improve(&facts, attributes[i], data[i]);
	gate_leave();
	return result;
}

/* The only attribute to set is CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, which drivers of today have set for all
 * memory, but refuse to set for memory by handle. */
static CUresult set(const void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
	CUresult result = driver_PointerSetAttribute(value, attribute, address);
	struct block block;
	enum where where;

	if (result != CUDA_ERROR_NOT_SUPPORTED)
		return result;
	memory_lock();
	where = block_find(address, &block);
	memory_unlock();
	if (where != IN_BLOCK)
		return result;
	return attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult replaced_cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
					CUdeviceptr address);
CUresult replaced_cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
	CUresult result;

	gate_enter();
	result = set(value, attribute, address);
	gate_leave();
	return result;
}

/* Host memory these two are about: the driver takes memory by handle for it, and that of cuMemAlloc not. */
static bool is_in_window(const void *address)
{
	bool found;

	memory_lock();
	found = gpu_of((uint64_t)address);
	memory_unlock();
	return found;
}

CUresult replaced_cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *host, unsigned int flags);
CUresult replaced_cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *host, unsigned int flags)
{
	CUresult (*real)(CUdeviceptr *, void *, unsigned int) =
		real_function(ENTRY_cuMemHostGetDevicePointer_v2);
	CUresult result;

	gate_enter();
	result = real(device, is_in_window(host) ? NOTHING : host, flags);
	gate_leave();
	return result;
}

CUresult replaced_cuMemHostGetFlags(unsigned int *flags, void *host);
CUresult replaced_cuMemHostGetFlags(unsigned int *flags, void *host)
{
	CUresult (*real)(unsigned int *, void *) = real_function(ENTRY_cuMemHostGetFlags);
	CUresult result;

	gate_enter();
	result = real(flags, is_in_window(host) ? NOTHING : host);
	gate_leave();
	return result;
}
