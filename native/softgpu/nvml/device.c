// SPDX-License-Identifier: Apache-2.0
/* NVML of the software GPU: its one device. Memory of other processes is not known here. */
#include "../identity.h"
#include "nvml.h"

#include <string.h>
#include <strings.h>

#define ENTER(device, pointer)                                  \
	do {                                                    \
		nvmlReturn entered = nvml_check_device(device); \
		if (entered)                                    \
			return entered;                         \
		if (!(pointer))                                 \
			return NVML_ERROR_INVALID_ARGUMENT;     \
	} while (0)

NVML_API(nvmlDeviceGetCount_v2, unsigned *count)
{
	ENTER(nvml_device(), count);
	*count = 1;
	return NVML_SUCCESS;
}

static nvmlReturn find(nvmlDevice *device, int found)
{
	ENTER(nvml_device(), device);
	if (!found)
		return NVML_ERROR_NOT_FOUND;
	*device = nvml_device();
	return NVML_SUCCESS;
}

NVML_API(nvmlDeviceGetHandleByIndex_v2, unsigned index, nvmlDevice *device)
{
	ENTER(nvml_device(), device && index == 0);
	return find(device, 1);
}

NVML_API(nvmlDeviceGetHandleByUUID, const char *uuid, nvmlDevice *device)
{
	ENTER(nvml_device(), uuid);
	return find(device, strcmp(uuid, DEVICE_UUID_TEXT) == 0);
}

NVML_API(nvmlDeviceGetHandleByPciBusId_v2, const char *id, nvmlDevice *device)
{
	size_t known = strlen(DEVICE_BUS_ID);

	ENTER(nvml_device(), id);
	/* The domain has four digits, or eight. */
	return find(device, strlen(id) >= known && strcasecmp(id + strlen(id) - known, DEVICE_BUS_ID) == 0);
}

NVML_API(nvmlDeviceGetIndex, nvmlDevice device, unsigned *index)
{
	ENTER(device, index);
	*index = 0;
	return NVML_SUCCESS;
}

NVML_API(nvmlDeviceGetMinorNumber, nvmlDevice device, unsigned *minor)
{
	ENTER(device, minor);
	*minor = 0;
	return NVML_SUCCESS;
}

NVML_API(nvmlDeviceGetName, nvmlDevice device, char *name, unsigned size)
{
	ENTER(device, name);
	return nvml_text(name, size, DEVICE_NAME);
}

NVML_API(nvmlDeviceGetUUID, nvmlDevice device, char *uuid, unsigned size)
{
	ENTER(device, uuid);
	return nvml_text(uuid, size, DEVICE_UUID_TEXT);
}

NVML_API(nvmlDeviceGetMemoryInfo, nvmlDevice device, struct nvml_memory *memory)
{
	ENTER(device, memory);
	memory->total = memory->free = device_memory_size();
	memory->used = 0;
	return NVML_SUCCESS;
}

NVML_API(nvmlDeviceGetMemoryInfo_v2, nvmlDevice device, struct nvml_memory_v2 *memory)
{
	ENTER(device, memory);
	if (memory->version != NVML_MEMORY_V2)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	memory->total = memory->free = device_memory_size();
	memory->reserved = memory->used = 0;
	return NVML_SUCCESS;
}

NVML_API(nvmlDeviceGetUtilizationRates, nvmlDevice device, struct nvml_utilization *utilization)
{
	ENTER(device, utilization);
	utilization->gpu = utilization->memory = 0;
	return NVML_SUCCESS;
}

NVML_API(nvmlDeviceGetPciInfo_v3, nvmlDevice device, struct nvml_pci *pci)
{
	ENTER(device, pci);
	*pci = (struct nvml_pci){ .bus = DEVICE_BUS };
	strcpy(pci->bus_id_legacy, DEVICE_BUS_ID);
	strcpy(pci->bus_id, "0000" DEVICE_BUS_ID);
	return NVML_SUCCESS;
}

NVML_API(nvmlDeviceGetCudaComputeCapability, nvmlDevice device, int *major, int *minor)
{
	ENTER(device, major && minor);
	*major = COMPUTE_MAJOR;
	*minor = COMPUTE_MINOR;
	return NVML_SUCCESS;
}

/* Persistence mode and MIG mode are both off. */
NVML_API(nvmlDeviceGetPersistenceMode, nvmlDevice device, unsigned *mode)
{
	ENTER(device, mode);
	*mode = 0;
	return NVML_SUCCESS;
}

NVML_API(nvmlDeviceGetMigMode, nvmlDevice device, unsigned *current, unsigned *pending)
{
	ENTER(device, current && pending);
	return NVML_ERROR_NOT_SUPPORTED;
}

static nvmlReturn no_processes(nvmlDevice device, unsigned *count)
{
	ENTER(device, count);
	*count = 0;
	return NVML_SUCCESS;
}

NVML_API(nvmlDeviceGetComputeRunningProcesses_v3, nvmlDevice device, unsigned *count, void *processes)
{
	return no_processes(device, count);
}

NVML_API(nvmlDeviceGetComputeRunningProcesses_v2, nvmlDevice device, unsigned *count, void *processes)
{
	return no_processes(device, count);
}

NVML_API(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlDevice device, unsigned *count, void *processes)
{
	return no_processes(device, count);
}
