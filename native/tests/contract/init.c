// SPDX-License-Identifier: Apache-2.0
/* Before and after cuInit, and what a device says about itself. */
#include "contract.h"

#include <stdio.h>
#include <string.h>

void group_init(void)
{
	CUdeviceptr memory;
	CUcontext ctx;
	CUdevice device;
	const char *name;
	int number = 0;

	code("version-before", cu.DriverGetVersion(&number));
	yes("version-plausible", number >= 12080 && number < 20000);
	code("version-null", cu.DriverGetVersion(NULL));
	code("count-before", cu.DeviceGetCount(&number));
	code("device-before", cu.DeviceGet(&device, 0));
	code("alloc-before", cu.MemAlloc(&memory, 4096));
	code("free-null-before", cu.MemFree(0));
	code("current-before", cu.CtxGetCurrent(&ctx));
	code("synchronize-before", cu.CtxSynchronize());
	code("error-name-before", cu.GetErrorName(CUDA_SUCCESS, &name));
	code("flags", cu.Init(1));
	code("still-before", cu.DeviceGetCount(&number));
	code("init", cu.Init(0));
	code("again", cu.Init(0));
	code("flags-after", cu.Init(1));
	code("count", cu.DeviceGetCount(&number));
	yes("some-device", number >= 1);
	code("count-null", cu.DeviceGetCount(NULL));
}

static int attribute(CUdevice device, CUdevice_attribute which)
{
	int number = -1;

	NEED(cu.DeviceGetAttribute(&number, which, device));
	return number;
}

static void attributes(CUdevice device)
{
	int number;

	value("warp", "%d", attribute(device, CU_DEVICE_ATTRIBUTE_WARP_SIZE));
	value("max-threads", "%d", attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
	value("max-grid-x", "%d", attribute(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X));
	yes("compute-at-least-7.5",
	    attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
			    attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) >=
		    75);
	yes("multiprocessors", attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) > 0);
	value("unified-addressing", "%d", attribute(device, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING));
	value("managed", "%d", attribute(device, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY));
	value("host-register", "%d", attribute(device, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED));
	value("vmm", "%d", attribute(device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED));
	value("vmm-fd", "%d",
	      attribute(device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED));
	value("pools", "%d", attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED));
	code("attribute-zero", cu.DeviceGetAttribute(&number, 0, device));
	code("attribute-unknown", cu.DeviceGetAttribute(&number, 100000, device));
	code("attribute-null", cu.DeviceGetAttribute(NULL, 1, device));
	code("attribute-device", cu.DeviceGetAttribute(&number, 1, 4711));
}

static void identity(CUdevice device)
{
	static const CUuuid zero;
	char name[256] = "", bus[32] = "";
	CUdevice found = -1;
	CUuuid uuid = zero;
	size_t total = 0;
	unsigned a, b, c, d;

	code("name", cu.DeviceGetName(name, sizeof(name), device));
	yes("name-text", strlen(name) > 2);
	code("name-device", cu.DeviceGetName(name, sizeof(name), 4711));
	memset(name, 'x', sizeof(name));
	code("name-short", cu.DeviceGetName(name, 4, device));
	yes("name-short-ends", memchr(name, '\0', 4) && name[4] == 'x');
	code("uuid", cu.DeviceGetUuid(&uuid, device));
	yes("uuid-set", memcmp(&uuid, &zero, sizeof(uuid)) != 0);
	code("memory", cu.DeviceTotalMem(&total, device));
	yes("memory-plausible", total >= 256 * MIB);
	code("bus", cu.DeviceGetPCIBusId(bus, sizeof(bus), device));
	yes("bus-text", sscanf(bus, "%x:%x:%x.%x", &a, &b, &c, &d) == 4);
	code("by-bus", cu.DeviceGetByPCIBusId(&found, bus));
	yes("by-bus-same", found == device);
	code("by-bus-unknown", cu.DeviceGetByPCIBusId(&found, "ffff:ee:1d.7"));
}

void group_device(void)
{
	CUdevice device = -1;
	unsigned flags = 77;
	int active = 77;

	NEED(cu.Init(0));
	code("get", cu.DeviceGet(&device, 0));
	value("ordinal", "%d", device);
	code("get-null", cu.DeviceGet(NULL, 0));
	code("get-beyond", cu.DeviceGet(&device, 4711));
	code("get-negative", cu.DeviceGet(&device, -1));
	device = 0;
	attributes(device);
	identity(device);
	code("primary-state", cu.DevicePrimaryCtxGetState(device, &flags, &active));
	value("primary-inactive", "flags %u active %d", flags, active);
}
