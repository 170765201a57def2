/* SPDX-License-Identifier: Apache-2.0
 *
 * libcuda.so.1 for small programs: loaded at run time, so that they start where there is none.
 */
#pragma once

#include <cuda_abi.h>

/* Functions as members of `cuda`: CHECK(cuda.Init(0)). The second name is the exported one. */
#define CUDA_FUNCTIONS(F)                                                                             \
	F(Init, cuInit, unsigned)                                                                     \
	F(DriverGetVersion, cuDriverGetVersion, int *)                                                \
	F(GetErrorName, cuGetErrorName, CUresult, const char **)                                      \
	F(GetProcAddress, cuGetProcAddress_v2, const char *, void **, int, uint64_t,                  \
	  CUdriverProcAddressQueryResult *)                                                           \
	F(DeviceGetCount, cuDeviceGetCount, int *)                                                    \
	F(DeviceGet, cuDeviceGet, CUdevice *, int)                                                    \
	F(DeviceGetName, cuDeviceGetName, char *, int, CUdevice)                                      \
	F(DevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, CUcontext *, CUdevice)                    \
	F(CtxSetCurrent, cuCtxSetCurrent, CUcontext)                                                  \
	F(CtxSynchronize, cuCtxSynchronize, void)                                                     \
	F(MemAlloc, cuMemAlloc_v2, CUdeviceptr *, size_t)                                             \
	F(MemAllocManaged, cuMemAllocManaged, CUdeviceptr *, size_t, unsigned)                        \
	F(MemFree, cuMemFree_v2, CUdeviceptr)                                                         \
	F(MemHostAlloc, cuMemHostAlloc, void **, size_t, unsigned)                                    \
	F(MemHostRegister, cuMemHostRegister_v2, void *, size_t, unsigned)                            \
	F(MemcpyHtoD, cuMemcpyHtoD_v2, CUdeviceptr, const void *, size_t)                             \
	F(MemcpyDtoH, cuMemcpyDtoH_v2, void *, CUdeviceptr, size_t)                                   \
	F(MemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, CUdeviceptr, const void *, size_t, CUstream)         \
	F(MemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, void *, CUdeviceptr, size_t, CUstream)               \
	F(MemsetD8Async, cuMemsetD8Async, CUdeviceptr, unsigned char, size_t, CUstream)               \
	F(MemHostGetDevicePointer, cuMemHostGetDevicePointer_v2, CUdeviceptr *, void *, unsigned)     \
	F(StreamCreate, cuStreamCreate, CUstream *, unsigned)                                         \
	F(StreamQuery, cuStreamQuery, CUstream)                                                       \
	F(StreamSynchronize, cuStreamSynchronize, CUstream)                                           \
	F(LaunchHostFunc, cuLaunchHostFunc, CUstream, CUhostFn, void *)                               \
	F(EventCreate, cuEventCreate, CUevent *, unsigned)                                            \
	F(EventRecord, cuEventRecord, CUevent, CUstream)                                              \
	F(EventQuery, cuEventQuery, CUevent)                                                          \
	F(EventSynchronize, cuEventSynchronize, CUevent)                                              \
	F(ModuleLoadData, cuModuleLoadData, CUmodule *, const void *)                                 \
	F(ModuleGetFunction, cuModuleGetFunction, CUfunction *, CUmodule, const char *)               \
	F(LaunchKernel, cuLaunchKernel, CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, \
	  unsigned, unsigned, CUstream, void **, void **)

struct cuda {
#define F(name, symbol, ...) CUresult (*name)(__VA_ARGS__);
	CUDA_FUNCTIONS(F)
#undef F
};

extern struct cuda cuda;

/* Exits with 77 and a message if there is no libcuda. */
void cuda_load(void);

/* Exits with 8 and a message if a call failed. */
void cuda_failed(CUresult result, const char *call);

#define CHECK(call)                                       \
	do {                                              \
		CUresult check_result = (call);           \
		if (check_result)                         \
			cuda_failed(check_result, #call); \
	} while (0)
