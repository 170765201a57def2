// SPDX-License-Identifier: Apache-2.0
/* The program's own mappings, which have to be made again as they were. */
#include "memory.h"

#include "gate.h"

static bool in_window(uint64_t address)
{
	bool found;

	memory_lock();
	found = gpu_of(address);
	memory_unlock();
	return found;
}

/* The record is made first: what cannot be recorded must not be mapped. Nobody finds it before its
 * place is known. */
static CUresult map(CUdeviceptr address, size_t size, size_t offset, struct backing *backing,
		    driver_handle real, driver_flags flags)
{
	struct mapping *mapping;
	CUresult result;

	memory_lock();
	mapping = mapping_add(backing, address, size, offset);
	memory_unlock();
	if (!mapping)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = driver_MemMap(address, size, offset, real, flags);
	memory_lock();
	if (result == CUDA_SUCCESS && !place_add(mapping)) {
		driver_MemUnmap(address, size);
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (result)
		mapping_remove(mapping);
	else if (backing->flags & DIAPAUSE_MEMORY_FOREIGN && backing->size < offset + size)
		backing->size = backing->used = offset + size; /* the driver does not tell it otherwise */
	memory_unlock();
	return result;
}

CUresult replaced_cuMemMap(CUdeviceptr address, size_t size, size_t offset, driver_handle name,
			   driver_flags flags);
CUresult replaced_cuMemMap(CUdeviceptr address, size_t size, size_t offset, driver_handle name,
			   driver_flags flags)
{
	struct backing *backing;
	driver_handle real;
	CUresult result;

	gate_enter();
	backing = vmm_pin(name, &real);
	if (in_window(address)) /* as if nothing had been reserved there */
		result = driver_MemMap(address, size, offset, 0, flags);
	else if (backing)
		result = map(address, size, offset, backing, real, flags);
	else
		result = driver_MemMap(address, size, offset, real, flags);
	if (backing)
		vmm_unpin(backing);
	gate_leave();
	return result;
}

/* Under the lock: take the mappings of a range out of their places, and tie them together. */
static struct mapping *displace(uint64_t address, uint64_t size)
{
	struct mapping *first = NULL, *mapping;

	while ((mapping = place_next(address, address + size))) {
		place_remove(mapping);
		mapping->displaced = first;
		first = mapping;
	}
	return first;
}

/* Another thread may map there as soon as the driver has unmapped, so the records go before. */
static CUresult unmap(CUdeviceptr address, size_t size)
{
	struct mapping *all, *next;
	CUresult result;

	memory_lock();
	all = displace(address, size);
	memory_unlock();
	result = driver_MemUnmap(address, size);
	for (struct mapping *mapping = all; mapping; mapping = next) {
		struct backing *backing = mapping->backing;

		next = mapping->displaced;
		memory_lock();
		if (result == CUDA_SUCCESS) {
			backing->pins++;
			mapping_remove(mapping);
		} else {
			place_add(mapping);
		}
		memory_unlock();
		if (result == CUDA_SUCCESS)
			vmm_unpin(backing);
	}
	return result;
}

CUresult replaced_cuMemUnmap(CUdeviceptr address, size_t size);
CUresult replaced_cuMemUnmap(CUdeviceptr address, size_t size)
{
	CUresult result;

	gate_enter();
	if (in_window(address))
		result = driver_MemUnmap(address, 0); /* refused, as for all memory of cuMemAlloc */
	else
		result = unmap(address, size);
	gate_leave();
	return result;
}

static void note(struct mapping *mapping, const CUmemAccessDesc *access)
{
	uint32_t i = 0;

	while (i < mapping->accesses && (mapping->access[i].location != access->location.type ||
					 mapping->access[i].id != access->location.id))
		i++;
	if (i == ACCESSES) {
		mapping->backing->flags |= BACKING_KEPT;
		return;
	}
	mapping->access[i] = (struct access){ access->location.type, access->flags, access->location.id };
	if (i == mapping->accesses)
		mapping->accesses++;
}

static void note_all(uint64_t address, uint64_t size, const CUmemAccessDesc *access, size_t n)
{
	uint64_t end = address + size;
	struct mapping *mapping;

	memory_lock();
	while ((mapping = place_next(address, end))) {
		for (size_t i = 0; i < n; i++)
			note(mapping, &access[i]);
		address = mapping->address + mapping->size;
	}
	memory_unlock();
}

CUresult replaced_cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc *access, size_t n);
CUresult replaced_cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc *access, size_t n)
{
	CUresult result;

	gate_enter();
	if (in_window(address)) {
		result = driver_MemSetAccess(address, 0, access, n); /* refused */
	} else {
		result = driver_MemSetAccess(address, size, access, n);
		if (result == CUDA_SUCCESS)
			note_all(address, size, access, n);
	}
	gate_leave();
	return result;
}

/* Parts of sparse arrays are mapped behind our back: that memory stays where it is. The layout of an
 * entry is CUarrayMapInfo's. */
struct array_map {
	unsigned char resource_and_subresource[56];
	int operation, handle_type;
	driver_handle handle;
	unsigned long long offset;
	unsigned int device_mask, flags, reserved[2];
};

static CUresult map_arrays(int entry, struct array_map *list, unsigned int n, void *stream)
{
	CUresult (*real)(struct array_map *, unsigned int, void *) = real_function(entry);
	CUresult result = CUDA_SUCCESS;

	for (unsigned int i = 0; list && i < n; i++) {
		driver_handle name = list[i].handle;
		struct backing *backing = vmm_pin(name, &list[i].handle);

		if (backing)
			vmm_keep(backing);
		result = real(&list[i], 1, stream);
		list[i].handle = name;
		if (backing)
			vmm_unpin(backing);
		if (result)
			return result;
	}
	return list && n ? result : real(list, n, stream);
}

CUresult replaced_cuMemMapArrayAsync(struct array_map *list, unsigned int n, void *stream);
CUresult replaced_cuMemMapArrayAsync(struct array_map *list, unsigned int n, void *stream)
{
	CUresult result;

	gate_enter();
	result = map_arrays(ENTRY_cuMemMapArrayAsync, list, n, stream);
	gate_leave();
	return result;
}

CUresult replaced_cuMemMapArrayAsync_ptsz(struct array_map *list, unsigned int n, void *stream);
CUresult replaced_cuMemMapArrayAsync_ptsz(struct array_map *list, unsigned int n, void *stream)
{
	CUresult result;

	gate_enter();
	result = map_arrays(ENTRY_cuMemMapArrayAsync_ptsz, list, n, stream);
	gate_leave();
	return result;
}
