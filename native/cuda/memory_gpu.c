// SPDX-License-Identifier: Apache-2.0
/* What a device can do, and its window: addresses that were reserved at the first allocation and stay
 * reserved, so that memory comes back to the same place whatever happened in between. */
#include "memory.h"

#include "gate.h"

#include <stdlib.h>
#include <string.h>

#define DECOMPRESS_ALGORITHMS 136 /* CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK */
#define FOR_DECOMPRESSION 2	  /* CU_MEM_CREATE_USAGE_HW_DECOMPRESS */
#define RDMA_WITH_VMM 110	  /* CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED */

#define WINDOW_WISH 0x300000000000ull
#define WINDOW_SIZE ((uint64_t)1 << 40)
#define WINDOW_LEAST ((uint64_t)1 << 36)

static struct gpu gpus[GPUS];

struct gpu *gpu_at(int ordinal)
{
	return ordinal >= 0 && ordinal < GPUS ? &gpus[ordinal] : NULL;
}

struct gpu *gpu_of(uint64_t address)
{
	for (int i = 0; i < GPUS; i++)
		if (address - gpus[i].window.base < gpus[i].window.size)
			return &gpus[i];
	return NULL;
}

driver_properties gpu_properties(const struct gpu *gpu)
{
	return (driver_properties){
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, gpu->ordinal },
		.allocFlags = { .gpuDirectRDMACapable = gpu->rdma,
				.usage = gpu->decompresses ? FOR_DECOMPRESSION : 0 },
	};
}

static bool attribute(const struct gpu *gpu, CUdevice_attribute which)
{
	int value = 0;

	return driver_DeviceGetAttribute(&value, which, gpu->ordinal) == CUDA_SUCCESS && value;
}

/* A way out for programs that cannot live with memory by handle. */
static bool is_unwanted(void)
{
	const char *wish = secure_getenv("DIAPAUSE_MEMORY");

	return wish && !strcmp(wish, "native");
}

static bool is_able(const struct gpu *gpu)
{
	static const int needed[] = { ENTRY_cuMemAddressReserve,
				      ENTRY_cuMemCreate,
				      ENTRY_cuMemMap,
				      ENTRY_cuMemSetAccess,
				      ENTRY_cuMemUnmap,
				      ENTRY_cuMemRelease,
				      ENTRY_cuMemExportToShareableHandle,
				      ENTRY_cuMemImportFromShareableHandle };
	driver_properties properties = gpu_properties(gpu);
	size_t granularity = 0;

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!real_has(needed[i]))
			return false;
	return attribute(gpu, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) &&
	       attribute(gpu, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) &&
	       driver_MemGetAllocationGranularity(&granularity, &properties, 0) == CUDA_SUCCESS &&
	       granularity && GRANULE % granularity == 0;
}

static CUresult reserve(struct gpu *gpu)
{
	uint64_t wish = WINDOW_WISH + gpu->ordinal * WINDOW_SIZE, size;
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
	CUdeviceptr base = 0;
	void *granules;

	for (size = WINDOW_SIZE; size >= WINDOW_LEAST; size /= 4) {
		result = driver_MemAddressReserve(&base, size, GRANULE, wish, 0);
		if (result == CUDA_SUCCESS)
			break;
	}
	if (result)
		return result;
	granules = pages_take(size / GRANULE * sizeof(void *));
	if (base % GRANULE || !window_make(&gpu->window, granules, base, size)) {
		driver_MemAddressFree(base, size);
		gpu->window = (struct window){ 0 };
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

static CUresult map(const struct gpu *gpu, uint64_t address, uint64_t size, driver_handle handle)
{
	CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, gpu->ordinal },
				   CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUresult result = driver_MemMap(address, size, 0, handle, 0);

	if (result)
		return result;
	result = driver_MemSetAccess(address, size, &access, 1);
	if (result)
		driver_MemUnmap(address, size);
	return result;
}

/* Attributes promise more than some machines keep. */
static CUresult try_out(const struct gpu *gpu)
{
	driver_properties properties = gpu_properties(gpu);
	driver_handle handle;
	CUresult result = driver_MemCreate(&handle, GRANULE, &properties, 0);

	if (result)
		return result;
	result = map(gpu, gpu->window.base, GRANULE, handle);
	if (!result)
		driver_MemUnmap(gpu->window.base, GRANULE);
	driver_MemRelease(handle);
	return result;
}

/* Under the lock. What may work another time leaves the device untried. */
static void prepare(struct gpu *gpu, int ordinal)
{
	CUresult result;

	gpu->ordinal = ordinal;
	if (is_unwanted() || !is_able(gpu)) {
		gpu->state = GPU_NATIVE;
		return;
	}
	if (driver_DeviceTotalMem_v2(&gpu->total, ordinal))
		return;
	result = gpu->window.size ? CUDA_SUCCESS : reserve(gpu);
	if (result == CUDA_SUCCESS) {
		gpu->decompresses = attribute(gpu, DECOMPRESS_ALGORITHMS);
		gpu->rdma = attribute(gpu, RDMA_WITH_VMM);
		result = try_out(gpu);
		if (result && result != CUDA_ERROR_OUT_OF_MEMORY && gpu->decompresses) {
			gpu->decompresses = false;
			result = try_out(gpu);
		}
		if (result && result != CUDA_ERROR_OUT_OF_MEMORY && gpu->rdma) {
			gpu->rdma = false;
			result = try_out(gpu);
		}
	}
	if (result == CUDA_SUCCESS)
		gpu->state = GPU_READY;
	else if (result != CUDA_ERROR_OUT_OF_MEMORY && !gate_captures())
		gpu->state = GPU_NATIVE;
}

struct gpu *gpu_current(struct context **context)
{
	CUcontext handle = NULL;
	CUdevice device = -1;
	struct gpu *gpu;

	if (driver_CtxGetCurrent(&handle) || !handle || driver_CtxGetDevice(&device))
		return NULL;
	gpu = gpu_at(device);
	if (!gpu)
		return NULL;
	memory_lock();
	*context = context_know(handle, device);
	if (gpu->state == GPU_UNTRIED)
		prepare(gpu, device);
	memory_unlock();
	return *context && gpu->state == GPU_READY ? gpu : NULL;
}

static void give_access(struct mapping *mapping, int device)
{
	if (mapping->accesses < ACCESSES)
		mapping->access[mapping->accesses++] =
			(struct access){ CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
					 device };
}

/* Under the lock: a record of memory at a place of the window, to be filled. */
static struct backing *place(struct gpu *gpu, uint64_t size)
{
	struct backing *backing = backing_take();
	struct mapping *mapping;
	uint64_t address;

	if (!backing)
		return NULL;
	address = window_take(&gpu->window, size);
	mapping = address ? mapping_add(backing, address, size, 0) : NULL;
	if (!mapping) {
		if (address)
			window_give(&gpu->window, address, size);
		backing_give(backing);
		return NULL;
	}
	backing->size = size;
	backing->device = gpu->ordinal;
	backing->properties = gpu_properties(gpu);
	give_access(mapping, gpu->ordinal);
	return backing;
}

/* Under the lock. */
static void unplace(struct gpu *gpu, struct backing *backing)
{
	window_give(&gpu->window, backing->mappings->address, backing->size);
	mapping_remove(backing->mappings);
	backing_give(backing);
}

/* Under the lock. Without that access copies between the devices go by the host: slower, not wrong. */
static void share(struct backing *backing, int device)
{
	CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, device },
				   CU_MEM_ACCESS_FLAGS_PROT_READWRITE };

	if (driver_MemSetAccess(backing->mappings->address, backing->size, &access, 1) == CUDA_SUCCESS)
		give_access(backing->mappings, device);
}

struct backing *gpu_backing(struct gpu *gpu, uint64_t size, uint32_t flags)
{
	struct backing *backing;
	CUresult result;

	memory_lock();
	backing = place(gpu, size);
	memory_unlock();
	if (!backing)
		return NULL;
	result = driver_MemCreate(&backing->real, size, &backing->properties, 0);
	if (result == CUDA_SUCCESS) {
		result = mapping_make(backing->mappings, backing->real);
		if (result)
			driver_MemRelease(backing->real);
	}
	memory_lock();
	if (result) {
		unplace(gpu, backing);
		backing = NULL;
	} else {
		backing->flags = flags | DIAPAUSE_MEMORY_ATTACHED;
		backing_add(backing);
		for (int i = 0; gpu->peers >> i; i++)
			if (gpu->peers >> i & 1)
				share(backing, i);
	}
	memory_unlock();
	return backing;
}

/* Without the lock, on memory that nobody finds any more. Its addresses are free when it is gone. */
void gpu_backing_free(struct gpu *gpu, struct backing *backing)
{
	memory_lock();
	backing_remove(backing);
	backing_drop_fd(backing);
	memory_unlock();
	driver_MemUnmap(backing->mappings->address, backing->size);
	driver_MemRelease(backing->real);
	backing_released(backing);
	memory_lock();
	unplace(gpu, backing);
	memory_unlock();
}

void gpu_share(int owner, int device)
{
	struct gpu *gpu = gpu_at(owner);

	if (!gpu || device < 0 || device >= GPUS)
		return;
	memory_lock();
	if (!(gpu->peers >> device & 1)) {
		gpu->peers |= 1ull << device;
		for (struct backing *backing = backing_from(0); backing; backing = backing->next)
			if (backing->device == owner && !backing->name)
				share(backing, device);
	}
	memory_unlock();
}

void gpus_forget(void)
{
	__builtin_memset(gpus, 0, sizeof(gpus));
}
