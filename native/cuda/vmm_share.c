// SPDX-License-Identifier: Apache-2.0
/* Handles that go to other processes and come from them, and multicast objects.
 *
 * What was brought back cannot be exported by the driver. If the program asked for memory that it can
 * export, the file descriptor from which it came back is kept: it is what an export would give. */
#include "memory.h"

#include "gate.h"

#include <fcntl.h>

#define POSIX CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

static CUresult give_kept(struct backing *backing, int *out)
{
	int fd;

	memory_lock();
	fd = backing->fd >= 0 ? fcntl(backing->fd, F_DUPFD_CLOEXEC, 0) : -1;
	memory_unlock();
	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	*out = fd;
	return CUDA_SUCCESS;
}

static CUresult export(void *out, struct backing *backing, driver_handle real, CUmemAllocationHandleType type,
		       driver_flags flags)
{
	CUresult result;

	if (backing && type == POSIX && !(backing->properties.requestedHandleTypes & POSIX) &&
	    !(backing->flags & (DIAPAUSE_MEMORY_FOREIGN | BACKING_MULTICAST)))
		real = 0; /* the program did not ask for it, so it gets the refusal */
	else if (backing && type == POSIX && backing->flags & DIAPAUSE_MEMORY_IMPORTED && out && !flags)
		return give_kept(backing, out);
	result = driver_MemExportToShareableHandle(out, real, type, flags);
	if (result == CUDA_SUCCESS && backing) {
		memory_lock();
		backing->flags |= DIAPAUSE_MEMORY_SHARED;
		memory_unlock();
	}
	return result;
}

CUresult replaced_cuMemExportToShareableHandle(void *out, driver_handle name, CUmemAllocationHandleType type,
					       driver_flags flags);
CUresult replaced_cuMemExportToShareableHandle(void *out, driver_handle name, CUmemAllocationHandleType type,
					       driver_flags flags)
{
	struct backing *backing;
	driver_handle real;
	CUresult result;

	gate_enter();
	backing = vmm_pin(name, &real);
	result = export(out, backing, real, type, flags);
	if (backing)
		vmm_unpin(backing);
	gate_leave();
	return result;
}

CUresult replaced_cuMemImportFromShareableHandle(driver_handle *handle, void *from,
						 CUmemAllocationHandleType type);
CUresult replaced_cuMemImportFromShareableHandle(driver_handle *handle, void *from,
						 CUmemAllocationHandleType type)
{
	driver_properties properties = { 0 };
	CUresult result;

	gate_enter();
	result = driver_MemImportFromShareableHandle(handle, from, type);
	if (result == CUDA_SUCCESS) {
		driver_MemGetAllocationPropertiesFromHandle(&properties, *handle);
		result = vmm_remember(handle, 0, &properties, DIAPAUSE_MEMORY_FOREIGN);
	}
	gate_leave();
	return result;
}

/* Multicast. A live object makes the driver's checkpoint wait for ever, so they are counted; memory that
 * was bound to one is bound behind our back. */
CUresult replaced_cuMulticastCreate(driver_handle *handle, const void *properties);
CUresult replaced_cuMulticastCreate(driver_handle *handle, const void *properties)
{
	CUresult (*real)(driver_handle *, const void *) = real_function(ENTRY_cuMulticastCreate);
	driver_properties none = { 0 };
	CUresult result;

	gate_enter();
	result = real(handle, properties);
	if (result == CUDA_SUCCESS) {
		result = vmm_remember(handle, 0, &none, BACKING_KEPT | BACKING_MULTICAST);
		if (result == CUDA_SUCCESS)
			vmm_multicasts++;
	}
	gate_leave();
	return result;
}

CUresult replaced_cuMulticastAddDevice(driver_handle name, CUdevice device);
CUresult replaced_cuMulticastAddDevice(driver_handle name, CUdevice device)
{
	CUresult (*call)(driver_handle, CUdevice) = real_function(ENTRY_cuMulticastAddDevice);
	struct backing *backing;
	driver_handle real;
	CUresult result;

	gate_enter();
	backing = vmm_pin(name, &real);
	result = call(real, device);
	if (backing)
		vmm_unpin(backing);
	gate_leave();
	return result;
}

CUresult replaced_cuMulticastBindMem(driver_handle name, size_t offset, driver_handle memory_name,
				     size_t memory_offset, size_t size, driver_flags flags);
CUresult replaced_cuMulticastBindMem(driver_handle name, size_t offset, driver_handle memory_name,
				     size_t memory_offset, size_t size, driver_flags flags)
{
	CUresult (*call)(driver_handle, size_t, driver_handle, size_t, size_t, driver_flags) =
		real_function(ENTRY_cuMulticastBindMem);
	struct backing *object, *memory;
	driver_handle real, real_memory;
	CUresult result;

	gate_enter();
	object = vmm_pin(name, &real);
	memory = vmm_pin(memory_name, &real_memory);
	result = call(real, offset, real_memory, memory_offset, size,
		      flags); /* may wait for other processes */
	if (memory) {
		if (result == CUDA_SUCCESS)
			vmm_keep(memory);
		vmm_unpin(memory);
	}
	if (object)
		vmm_unpin(object);
	gate_leave();
	return result;
}

CUresult replaced_cuMulticastBindAddr(driver_handle name, size_t offset, CUdeviceptr address, size_t size,
				      driver_flags flags);
CUresult replaced_cuMulticastBindAddr(driver_handle name, size_t offset, CUdeviceptr address, size_t size,
				      driver_flags flags)
{
	CUresult (*call)(driver_handle, size_t, CUdeviceptr, size_t, driver_flags) =
		real_function(ENTRY_cuMulticastBindAddr);
	struct backing *object;
	struct mapping *mapping;
	driver_handle real;
	CUresult result;

	gate_enter();
	object = vmm_pin(name, &real);
	result = call(real, offset, address, size, flags);
	memory_lock();
	mapping = result == CUDA_SUCCESS ? place_find(address) : NULL;
	if (mapping)
		mapping->backing->flags |= BACKING_KEPT;
	memory_unlock();
	if (object)
		vmm_unpin(object);
	gate_leave();
	return result;
}

CUresult replaced_cuMulticastUnbind(driver_handle name, CUdevice device, size_t offset, size_t size);
CUresult replaced_cuMulticastUnbind(driver_handle name, CUdevice device, size_t offset, size_t size)
{
	CUresult (*call)(driver_handle, CUdevice, size_t, size_t) = real_function(ENTRY_cuMulticastUnbind);
	struct backing *backing;
	driver_handle real;
	CUresult result;

	gate_enter();
	backing = vmm_pin(name, &real);
	result = call(real, device, offset, size);
	if (backing)
		vmm_unpin(backing);
	gate_leave();
	return result;
}
