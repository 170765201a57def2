/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's functions that the memory layer calls, as driver_NAME: the real ones, past the gate.
 */
#ifndef DIAPAUSE_MEMORY_DRIVER_H
#define DIAPAUSE_MEMORY_DRIVER_H

#include "library.h"

#define DRIVER(name, parameters, arguments)             \
	static inline CUresult driver_##name parameters \
	{                                               \
		CUresult(*call) parameters;             \
                                                        \
		call = real_function(ENTRY_cu##name);   \
		return call arguments;                  \
	}

typedef CUmemGenericAllocationHandle driver_handle;
typedef CUmemAllocationProp driver_properties;
typedef unsigned long long driver_flags;

/* clang-format off */
DRIVER(DeviceGetCount, (int *count), (count))
DRIVER(DeviceGetUuid_v2, (CUuuid *uuid, CUdevice dev), (uuid, dev))
DRIVER(DeviceGetUuid, (CUuuid *uuid, CUdevice dev), (uuid, dev))
DRIVER(DeviceTotalMem_v2, (size_t *bytes, CUdevice dev), (bytes, dev))
DRIVER(DeviceGetAttribute, (int *value, CUdevice_attribute attribute, CUdevice dev), (value, attribute, dev))
DRIVER(DevicePrimaryCtxGetState, (CUdevice dev, unsigned int *flags, int *active), (dev, flags, active))

DRIVER(CtxGetCurrent, (CUcontext *ctx), (ctx))
DRIVER(CtxGetDevice, (CUdevice *dev), (dev))
DRIVER(CtxPushCurrent_v2, (CUcontext ctx), (ctx))
DRIVER(CtxPopCurrent_v2, (CUcontext *ctx), (ctx))
DRIVER(CtxSynchronize, (void), ())

DRIVER(ThreadExchangeStreamCaptureMode, (int *mode), (mode))

DRIVER(MemAlloc_v2, (CUdeviceptr *address, size_t size), (address, size))
DRIVER(MemAllocPitch_v2, (CUdeviceptr *address, size_t *pitch, size_t width, size_t height, unsigned int element), (address, pitch, width, height, element))
DRIVER(MemFree_v2, (CUdeviceptr address), (address))
DRIVER(MemGetAddressRange_v2, (CUdeviceptr *base, size_t *size, CUdeviceptr address), (base, size, address))
DRIVER(MemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t size), (to, from, size))
DRIVER(PointerGetAttribute, (void *data, CUpointer_attribute attribute, CUdeviceptr address), (data, attribute, address))
DRIVER(PointerSetAttribute, (const void *value, CUpointer_attribute attribute, CUdeviceptr address), (value, attribute, address))
DRIVER(PointerGetAttributes, (unsigned int n, CUpointer_attribute *attributes, void **data, CUdeviceptr address), (n, attributes, data, address))

DRIVER(MemGetAllocationGranularity, (size_t *bytes, const driver_properties *properties, CUmemAllocationGranularity_flags option), (bytes, properties, option))
DRIVER(MemAddressReserve, (CUdeviceptr *address, size_t size, size_t alignment, CUdeviceptr wish, driver_flags flags), (address, size, alignment, wish, flags))
DRIVER(MemAddressFree, (CUdeviceptr address, size_t size), (address, size))
DRIVER(MemCreate, (driver_handle *handle, size_t size, const driver_properties *properties, driver_flags flags), (handle, size, properties, flags))
DRIVER(MemRelease, (driver_handle handle), (handle))
DRIVER(MemMap, (CUdeviceptr address, size_t size, size_t offset, driver_handle handle, driver_flags flags), (address, size, offset, handle, flags))
DRIVER(MemUnmap, (CUdeviceptr address, size_t size), (address, size))
DRIVER(MemSetAccess, (CUdeviceptr address, size_t size, const CUmemAccessDesc *access, size_t n), (address, size, access, n))
DRIVER(MemRetainAllocationHandle, (driver_handle *handle, void *address), (handle, address))
DRIVER(MemExportToShareableHandle, (void *out, driver_handle handle, CUmemAllocationHandleType type, driver_flags flags), (out, handle, type, flags))
DRIVER(MemImportFromShareableHandle, (driver_handle *handle, void *from, CUmemAllocationHandleType type), (handle, from, type))
DRIVER(MemGetAllocationPropertiesFromHandle, (driver_properties *properties, driver_handle handle), (properties, handle))
/* clang-format on */

#undef DRIVER

#endif
