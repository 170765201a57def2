// SPDX-License-Identifier: Apache-2.0
/* What the device says about itself. */
#include "softgpu.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static const int attributes[CU_DEVICE_ATTRIBUTE_MAX] = {
	[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 1024,
	[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X] = 1024,
	[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y] = 1024,
	[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z] = 64,
	[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X] = INT_MAX,
	[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y] = 65535,
	[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z] = 65535,
	[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK] = 49152,
	[CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY] = 65536,
	[CU_DEVICE_ATTRIBUTE_WARP_SIZE] = 32,
	[CU_DEVICE_ATTRIBUTE_MAX_PITCH] = INT_MAX,
	[CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK] = 65536,
	[CU_DEVICE_ATTRIBUTE_CLOCK_RATE] = 1000000,
	[CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT] = 512,
	[CU_DEVICE_ATTRIBUTE_GPU_OVERLAP] = 1,
	[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] = 1,
	[CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY] = 1,
	[CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS] = 1,
	[CU_DEVICE_ATTRIBUTE_PCI_BUS_ID] = DEVICE_BUS,
	[CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID] = 0,
	[CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE] = 1000000,
	[CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH] = 64,
	[CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE] = 1 << 20,
	[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR] = 2048,
	[CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT] = 1,
	[CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING] = 1,
	[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] = COMPUTE_MAJOR,
	[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR] = COMPUTE_MINOR,
	[CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY] = 1,
	[CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS] = 1,
	[CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM] = 1,
	[CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED] = 1,
};

CUDA_API(cuDeviceGetCount, int *count)
{
	ENTER();
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = 1;
	return CUDA_SUCCESS;
}

CUDA_API(cuDeviceGet, CUdevice *dev, int ordinal)
{
	ENTER();
	if (!dev)
		return CUDA_ERROR_INVALID_VALUE;
	if (ordinal != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	*dev = 0;
	return CUDA_SUCCESS;
}

/* The order of complaints is the driver's: first the pointers, then the device. */
#define ENTER_DEVICE(dev, pointers)              \
	ENTER();                                 \
	if (!(pointers))                         \
		return CUDA_ERROR_INVALID_VALUE; \
	if ((dev) != 0)                          \
	return CUDA_ERROR_INVALID_DEVICE

CUDA_API(cuDeviceGetName, char *name, int size, CUdevice dev)
{
	ENTER_DEVICE(dev, name && size > 0);
	snprintf(name, (size_t)size, "%s", DEVICE_NAME);
	return CUDA_SUCCESS;
}

CUDA_API(cuDeviceGetUuid, CUuuid *uuid, CUdevice dev)
{
	ENTER_DEVICE(dev, uuid);
	*uuid = device_uuid;
	return CUDA_SUCCESS;
}

CUDA_API(cuDeviceGetUuid_v2, CUuuid *uuid, CUdevice dev)
{
	return cuDeviceGetUuid(uuid, dev);
}

CUDA_API(cuDeviceTotalMem_v2, size_t *bytes, CUdevice dev)
{
	ENTER_DEVICE(dev, bytes);
	*bytes = device.memory;
	return CUDA_SUCCESS;
}

CUDA_API(cuDeviceGetAttribute, int *value, CUdevice_attribute attribute, CUdevice dev)
{
	ENTER_DEVICE(dev, value && attribute >= 1 && attribute < CU_DEVICE_ATTRIBUTE_MAX);
	*value = attributes[attribute];
	return CUDA_SUCCESS;
}

CUDA_API(cuDeviceComputeCapability, int *major, int *minor, CUdevice dev)
{
	ENTER_DEVICE(dev, major && minor);
	*major = COMPUTE_MAJOR;
	*minor = COMPUTE_MINOR;
	return CUDA_SUCCESS;
}

CUDA_API(cuDeviceGetProperties, CUdevprop *properties, CUdevice dev)
{
	ENTER_DEVICE(dev, properties);
	*properties = (CUdevprop){
		.maxThreadsPerBlock = 1024,
		.maxThreadsDim = { 1024, 1024, 64 },
		.maxGridSize = { INT_MAX, 65535, 65535 },
		.sharedMemPerBlock = 49152,
		.totalConstantMemory = 65536,
		.SIMDWidth = 32,
		.memPitch = INT_MAX,
		.regsPerBlock = 65536,
		.clockRate = 1000000,
		.textureAlign = 512,
	};
	return CUDA_SUCCESS;
}

CUDA_API(cuDeviceGetPCIBusId, char *id, int size, CUdevice dev)
{
	ENTER_DEVICE(dev, id && size > 0);
	snprintf(id, (size_t)size, "%s", DEVICE_BUS_ID);
	return CUDA_SUCCESS;
}

CUDA_API(cuDeviceGetByPCIBusId, CUdevice *dev, const char *id)
{
	ENTER();
	if (!dev || !id)
		return CUDA_ERROR_INVALID_VALUE;
	if (strcasecmp(id, DEVICE_BUS_ID) != 0 && strcasecmp(id, &DEVICE_BUS_ID[5]) != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	*dev = 0;
	return CUDA_SUCCESS;
}

CUDA_API(cuDeviceCanAccessPeer, int *can, CUdevice dev, CUdevice peer)
{
	ENTER_DEVICE(dev | peer, can);
	*can = 0;
	return CUDA_SUCCESS;
}
