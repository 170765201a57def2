// SPDX-License-Identifier: Apache-2.0
/* The program's own handles of device memory: made as it asks, and in addition such that they can be
 * exported. The driver holds one reference of ours; the program's are counted here, so that a handle
 * whose name the program has given back, but which is mapped, can still be taken away. */
#include "memory.h"

#include "gate.h"

_Atomic uint64_t vmm_multicasts;

#define POSIX CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

static bool on_device(const driver_properties *properties)
{
	return properties && properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
}

/* Under the lock. Without memory for a record, or if the driver keeps it to itself: NULL. */
static struct backing *record(driver_handle real, uint64_t size, const driver_properties *properties,
			      uint32_t flags)
{
	struct backing *backing = backing_take();

	if (!backing)
		return NULL;
	backing->real = real;
	backing->size = backing->used = size;
	backing->device = on_device(properties) ? properties->location.id : -1;
	backing->properties = *properties;
	backing->flags = flags | DIAPAUSE_MEMORY_PROGRAM | DIAPAUSE_MEMORY_ATTACHED;
	backing->references = 1;
	backing_add(backing);
	name_add(backing);
	return backing;
}

/* A handle of memory that is not ours to move keeps its record for its name alone. */
CUresult vmm_remember(driver_handle *handle, uint64_t size, const driver_properties *properties,
		      uint32_t flags)
{
	struct backing *backing;

	memory_lock();
	backing = record(*handle, size, properties, flags);
	if (backing)
		*handle = backing->name;
	memory_unlock();
	if (backing)
		return CUDA_SUCCESS;
	driver_MemRelease(*handle);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult make(driver_handle *handle, size_t size, const driver_properties *properties,
		     driver_flags flags)
{
	uint64_t since = 0;
	CUresult result;

	do
		result = driver_MemCreate(handle, size, properties, flags);
	while (result == CUDA_ERROR_OUT_OF_MEMORY && backing_wait(&since));
	return result;
}

static CUresult create(driver_handle *handle, size_t size, const driver_properties *asked, driver_flags flags)
{
	driver_properties wider;
	CUresult result;

	if (handle && on_device(asked) && asked->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
	    (!asked->requestedHandleTypes || asked->requestedHandleTypes & POSIX)) {
		wider = *asked;
		wider.requestedHandleTypes |= POSIX;
		result = make(handle, size, &wider, flags);
		if (result == CUDA_SUCCESS) {
			driver_MemGetAllocationPropertiesFromHandle(&wider, *handle); /* as it took them */
			wider.requestedHandleTypes = asked->requestedHandleTypes;
			return vmm_remember(handle, size, &wider, 0);
		}
		if (asked->requestedHandleTypes || result == CUDA_ERROR_OUT_OF_MEMORY)
			return result;
	}
	result = driver_MemCreate(handle, size, asked, flags);
	return result ? result : vmm_remember(handle, size, asked, BACKING_KEPT);
}

CUresult replaced_cuMemCreate(driver_handle *handle, size_t size, const driver_properties *properties,
			      driver_flags flags);
CUresult replaced_cuMemCreate(driver_handle *handle, size_t size, const driver_properties *properties,
			      driver_flags flags)
{
	CUresult result;

	gate_enter();
	result = create(handle, size, properties, flags);
	gate_leave();
	return result;
}

struct backing *vmm_pin(driver_handle name, driver_handle *real)
{
	struct backing *backing;

	*real = name;
	memory_lock();
	backing = name ? name_find(name) : NULL;
	if (backing && backing->references) {
		backing->pins++;
		*real = backing->real;
	} else if (backing) {
		backing = NULL;
		*real = 0;
	}
	memory_unlock();
	return backing;
}

void vmm_keep(struct backing *backing)
{
	memory_lock();
	backing->flags |= BACKING_KEPT;
	memory_unlock();
}

/* The last one to leave takes the memory along. */
void vmm_unpin(struct backing *backing)
{
	bool over;

	memory_lock();
	backing->pins--;
	over = !backing->pins && !backing->references && !backing->mappings;
	if (over) {
		backing_remove(backing);
		backing_drop_fd(backing);
		if (backing->flags & BACKING_MULTICAST)
			vmm_multicasts--;
	}
	memory_unlock();
	if (!over)
		return;
	driver_MemRelease(backing->real);
	backing_released(backing);
	memory_lock();
	backing_give(backing);
	memory_unlock();
}

CUresult replaced_cuMemRelease(driver_handle name);
CUresult replaced_cuMemRelease(driver_handle name)
{
	CUresult result = CUDA_SUCCESS;
	struct backing *backing;
	driver_handle real;

	gate_enter();
	backing = vmm_pin(name, &real);
	if (backing) {
		memory_lock();
		if (backing->references)
			backing->references--;
		memory_unlock();
		vmm_unpin(backing);
	} else {
		result = driver_MemRelease(real);
	}
	gate_leave();
	return result;
}

CUresult replaced_cuMemRetainAllocationHandle(driver_handle *name, void *address);
CUresult replaced_cuMemRetainAllocationHandle(driver_handle *name, void *address)
{
	struct mapping *mapping = NULL;
	struct block block;
	enum where where;
	CUresult result;

	gate_enter();
	memory_lock();
	where = block_find((uint64_t)address, &block);
	if (where == IN_MAPPING && name) {
		mapping = place_find((uint64_t)address);
		mapping->backing->references++;
		*name = mapping->backing->name;
	}
	memory_unlock();
	if (mapping)
		result = CUDA_SUCCESS;
	else if (where == IN_BLOCK || where == IN_WINDOW)
		result = driver_MemRetainAllocationHandle(name, NULL);
	else
		result = driver_MemRetainAllocationHandle(name, address);
	gate_leave();
	return result;
}

CUresult replaced_cuMemGetAllocationPropertiesFromHandle(driver_properties *properties, driver_handle name);
CUresult replaced_cuMemGetAllocationPropertiesFromHandle(driver_properties *properties, driver_handle name)
{
	struct backing *backing;
	driver_handle real;
	CUresult result;

	gate_enter();
	backing = vmm_pin(name, &real);
	result = driver_MemGetAllocationPropertiesFromHandle(properties, real);
	if (backing && result == CUDA_SUCCESS && !(backing->flags & BACKING_MULTICAST)) {
		properties->requestedHandleTypes = backing->properties.requestedHandleTypes;
		properties->allocFlags = backing->properties.allocFlags;
	}
	if (backing)
		vmm_unpin(backing);
	gate_leave();
	return result;
}
