/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's functions as members of `cu`: cu.Init(0). The second name is the exported one.
 */
#pragma once

#include <cuda_abi.h>

/* clang-format off */
#define GENERAL_FUNCTIONS(F) \
	F(Init, cuInit, unsigned) \
	F(DriverGetVersion, cuDriverGetVersion, int *) \
	F(GetErrorName, cuGetErrorName, CUresult, const char **) \
	F(GetErrorString, cuGetErrorString, CUresult, const char **) \
	F(GetProcAddress_v1, cuGetProcAddress, const char *, void **, int, cuuint64_t) \
	F(GetProcAddress, cuGetProcAddress_v2, const char *, void **, int, cuuint64_t, \
	  CUdriverProcAddressQueryResult *) \
	F(DeviceGetCount, cuDeviceGetCount, int *) \
	F(DeviceGet, cuDeviceGet, CUdevice *, int) \
	F(DeviceGetName, cuDeviceGetName, char *, int, CUdevice) \
	F(DeviceGetUuid, cuDeviceGetUuid_v2, CUuuid *, CUdevice) \
	F(DeviceTotalMem, cuDeviceTotalMem_v2, size_t *, CUdevice) \
	F(DeviceGetAttribute, cuDeviceGetAttribute, int *, CUdevice_attribute, CUdevice) \
	F(DeviceGetPCIBusId, cuDeviceGetPCIBusId, char *, int, CUdevice) \
	F(DeviceGetByPCIBusId, cuDeviceGetByPCIBusId, CUdevice *, const char *) \
	F(DeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool, CUmemoryPool *, CUdevice) \
	F(DevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, CUcontext *, CUdevice) \
	F(DevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, CUdevice) \
	F(DevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2, CUdevice) \
	F(DevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState, CUdevice, unsigned *, int *) \
	F(CtxCreate, cuCtxCreate_v2, CUcontext *, unsigned, CUdevice) \
	F(CtxDestroy, cuCtxDestroy_v2, CUcontext) \
	F(CtxPushCurrent, cuCtxPushCurrent_v2, CUcontext) \
	F(CtxPopCurrent, cuCtxPopCurrent_v2, CUcontext *) \
	F(CtxSetCurrent, cuCtxSetCurrent, CUcontext) \
	F(CtxGetCurrent, cuCtxGetCurrent, CUcontext *) \
	F(CtxGetDevice, cuCtxGetDevice, CUdevice *) \
	F(CtxGetApiVersion, cuCtxGetApiVersion, CUcontext, unsigned *) \
	F(CtxGetLimit, cuCtxGetLimit, size_t *, CUlimit) \
	F(CtxSynchronize, cuCtxSynchronize, void) \
	F(CtxGetStreamPriorityRange, cuCtxGetStreamPriorityRange, int *, int *) \
	F(PointerGetAttribute, cuPointerGetAttribute, void *, CUpointer_attribute, CUdeviceptr) \
	F(PointerGetAttributes, cuPointerGetAttributes, unsigned, CUpointer_attribute *, void **, CUdeviceptr)

#define MEMORY_FUNCTIONS(F) \
	F(MemGetInfo, cuMemGetInfo_v2, size_t *, size_t *) \
	F(MemAlloc, cuMemAlloc_v2, CUdeviceptr *, size_t) \
	F(MemAllocPitch, cuMemAllocPitch_v2, CUdeviceptr *, size_t *, size_t, size_t, unsigned) \
	F(MemAllocManaged, cuMemAllocManaged, CUdeviceptr *, size_t, unsigned) \
	F(MemFree, cuMemFree_v2, CUdeviceptr) \
	F(MemGetAddressRange, cuMemGetAddressRange_v2, CUdeviceptr *, size_t *, CUdeviceptr) \
	F(MemHostAlloc, cuMemHostAlloc, void **, size_t, unsigned) \
	F(MemAllocHost, cuMemAllocHost_v2, void **, size_t) \
	F(MemFreeHost, cuMemFreeHost, void *) \
	F(MemHostGetDevicePointer, cuMemHostGetDevicePointer_v2, CUdeviceptr *, void *, unsigned) \
	F(MemHostGetFlags, cuMemHostGetFlags, unsigned *, void *) \
	F(MemHostRegister, cuMemHostRegister_v2, void *, size_t, unsigned) \
	F(MemHostUnregister, cuMemHostUnregister, void *) \
	F(Memcpy, cuMemcpy, CUdeviceptr, CUdeviceptr, size_t) \
	F(MemcpyAsync, cuMemcpyAsync, CUdeviceptr, CUdeviceptr, size_t, CUstream) \
	F(MemcpyHtoD, cuMemcpyHtoD_v2, CUdeviceptr, const void *, size_t) \
	F(MemcpyDtoH, cuMemcpyDtoH_v2, void *, CUdeviceptr, size_t) \
	F(MemcpyDtoD, cuMemcpyDtoD_v2, CUdeviceptr, CUdeviceptr, size_t) \
	F(MemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, CUdeviceptr, const void *, size_t, CUstream) \
	F(MemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, void *, CUdeviceptr, size_t, CUstream) \
	F(MemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, CUdeviceptr, CUdeviceptr, size_t, CUstream) \
	F(MemsetD8, cuMemsetD8_v2, CUdeviceptr, unsigned char, size_t) \
	F(MemsetD16, cuMemsetD16_v2, CUdeviceptr, unsigned short, size_t) \
	F(MemsetD32, cuMemsetD32_v2, CUdeviceptr, unsigned, size_t) \
	F(MemsetD2D8, cuMemsetD2D8_v2, CUdeviceptr, size_t, unsigned char, size_t, size_t) \
	F(MemsetD8Async, cuMemsetD8Async, CUdeviceptr, unsigned char, size_t, CUstream) \
	F(MemsetD32Async, cuMemsetD32Async, CUdeviceptr, unsigned, size_t, CUstream) \
	F(MemAllocAsync, cuMemAllocAsync, CUdeviceptr *, size_t, CUstream) \
	F(MemFreeAsync, cuMemFreeAsync, CUdeviceptr, CUstream) \
	F(MemPoolCreate, cuMemPoolCreate, CUmemoryPool *, const CUmemPoolProps *) \
	F(MemPoolDestroy, cuMemPoolDestroy, CUmemoryPool) \
	F(MemPoolGetAttribute, cuMemPoolGetAttribute, CUmemoryPool, CUmemPool_attribute, void *) \
	F(MemPoolSetAttribute, cuMemPoolSetAttribute, CUmemoryPool, CUmemPool_attribute, void *) \
	F(MemPoolTrimTo, cuMemPoolTrimTo, CUmemoryPool, size_t) \
	F(MemAllocFromPoolAsync, cuMemAllocFromPoolAsync, CUdeviceptr *, size_t, CUmemoryPool, CUstream)

#define VMM_FUNCTIONS(F) \
	F(MemGetAllocationGranularity, cuMemGetAllocationGranularity, size_t *, const CUmemAllocationProp *, \
	  CUmemAllocationGranularity_flags) \
	F(MemCreate, cuMemCreate, CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, \
	  unsigned long long) \
	F(MemRelease, cuMemRelease, CUmemGenericAllocationHandle) \
	F(MemAddressReserve, cuMemAddressReserve, CUdeviceptr *, size_t, size_t, CUdeviceptr, \
	  unsigned long long) \
	F(MemAddressFree, cuMemAddressFree, CUdeviceptr, size_t) \
	F(MemMap, cuMemMap, CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long) \
	F(MemUnmap, cuMemUnmap, CUdeviceptr, size_t) \
	F(MemSetAccess, cuMemSetAccess, CUdeviceptr, size_t, const CUmemAccessDesc *, size_t) \
	F(MemGetAccess, cuMemGetAccess, unsigned long long *, const CUmemLocation *, CUdeviceptr) \
	F(MemRetainAllocationHandle, cuMemRetainAllocationHandle, CUmemGenericAllocationHandle *, void *) \
	F(MemGetAllocationPropertiesFromHandle, cuMemGetAllocationPropertiesFromHandle, \
	  CUmemAllocationProp *, CUmemGenericAllocationHandle) \
	F(MemExportToShareableHandle, cuMemExportToShareableHandle, void *, CUmemGenericAllocationHandle, \
	  CUmemAllocationHandleType, unsigned long long) \
	F(MemImportFromShareableHandle, cuMemImportFromShareableHandle, CUmemGenericAllocationHandle *, \
	  void *, CUmemAllocationHandleType)

#define STREAM_FUNCTIONS(F) \
	F(StreamCreate, cuStreamCreate, CUstream *, unsigned) \
	F(StreamCreateWithPriority, cuStreamCreateWithPriority, CUstream *, unsigned, int) \
	F(StreamDestroy, cuStreamDestroy_v2, CUstream) \
	F(StreamQuery, cuStreamQuery, CUstream) \
	F(StreamSynchronize, cuStreamSynchronize, CUstream) \
	F(StreamWaitEvent, cuStreamWaitEvent, CUstream, CUevent, unsigned) \
	F(StreamAddCallback, cuStreamAddCallback, CUstream, CUstreamCallback, void *, unsigned) \
	F(StreamGetFlags, cuStreamGetFlags, CUstream, unsigned *) \
	F(StreamGetPriority, cuStreamGetPriority, CUstream, int *) \
	F(StreamGetCtx, cuStreamGetCtx, CUstream, CUcontext *) \
	F(StreamIsCapturing, cuStreamIsCapturing, CUstream, CUstreamCaptureStatus *) \
	F(LaunchHostFunc, cuLaunchHostFunc, CUstream, CUhostFn, void *) \
	F(EventCreate, cuEventCreate, CUevent *, unsigned) \
	F(EventDestroy, cuEventDestroy_v2, CUevent) \
	F(EventRecord, cuEventRecord, CUevent, CUstream) \
	F(EventQuery, cuEventQuery, CUevent) \
	F(EventSynchronize, cuEventSynchronize, CUevent) \
	F(EventElapsedTime, cuEventElapsedTime, float *, CUevent, CUevent)

#define MODULE_FUNCTIONS(F) \
	F(ModuleLoadData, cuModuleLoadData, CUmodule *, const void *) \
	F(ModuleLoadDataEx, cuModuleLoadDataEx, CUmodule *, const void *, unsigned, CUjit_option *, void **) \
	F(ModuleUnload, cuModuleUnload, CUmodule) \
	F(ModuleGetFunction, cuModuleGetFunction, CUfunction *, CUmodule, const char *) \
	F(ModuleGetGlobal, cuModuleGetGlobal_v2, CUdeviceptr *, size_t *, CUmodule, const char *) \
	F(ModuleGetFunctionCount, cuModuleGetFunctionCount, unsigned *, CUmodule) \
	F(FuncGetAttribute, cuFuncGetAttribute, int *, CUfunction_attribute, CUfunction) \
	F(FuncGetName, cuFuncGetName, const char **, CUfunction) \
	F(FuncGetParamInfo, cuFuncGetParamInfo, CUfunction, size_t, size_t *, size_t *) \
	F(LibraryLoadData, cuLibraryLoadData, CUlibrary *, const void *, CUjit_option *, void **, unsigned, \
	  CUlibraryOption *, void **, unsigned) \
	F(LibraryUnload, cuLibraryUnload, CUlibrary) \
	F(LibraryGetKernel, cuLibraryGetKernel, CUkernel *, CUlibrary, const char *) \
	F(KernelGetFunction, cuKernelGetFunction, CUfunction *, CUkernel) \
	F(LaunchKernel, cuLaunchKernel, CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, \
	  unsigned, unsigned, CUstream, void **, void **) \
	F(LaunchKernelEx, cuLaunchKernelEx, const CUlaunchConfig *, CUfunction, void **, void **)

#define CHECKPOINT_FUNCTIONS(F) \
	F(CheckpointProcessLock, cuCheckpointProcessLock, int, CUcheckpointLockArgs *) \
	F(CheckpointProcessCheckpoint, cuCheckpointProcessCheckpoint, int, CUcheckpointCheckpointArgs *) \
	F(CheckpointProcessRestore, cuCheckpointProcessRestore, int, CUcheckpointRestoreArgs *) \
	F(CheckpointProcessUnlock, cuCheckpointProcessUnlock, int, CUcheckpointUnlockArgs *) \
	F(CheckpointProcessGetState, cuCheckpointProcessGetState, int, CUprocessState *) \
	F(CheckpointProcessGetRestoreThreadId, cuCheckpointProcessGetRestoreThreadId, int, int *)

#define DRIVER_FUNCTIONS(F) \
	GENERAL_FUNCTIONS(F) \
	MEMORY_FUNCTIONS(F) \
	VMM_FUNCTIONS(F) \
	STREAM_FUNCTIONS(F) \
	MODULE_FUNCTIONS(F) \
	CHECKPOINT_FUNCTIONS(F)
/* clang-format on */

struct cu {
#define F(name, symbol, ...) CUresult (*name)(__VA_ARGS__);
	DRIVER_FUNCTIONS(F)
#undef F
};

extern struct cu cu;

/* Binds `cu`; exits with 77 and a message if the file or a function of it is not there. */
void api_load(const char *file);
/* What dlsym says about a name: to compare with what cuGetProcAddress says. */
void *api_symbol(const char *name);
