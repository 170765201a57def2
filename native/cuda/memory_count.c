// SPDX-License-Identifier: Apache-2.0
/* Calls whose memory stays the driver's: made as they are, and counted. */
#include "memory.h"

#include "gate.h"

_Atomic uint64_t ipc_given;

/* A call that makes memory (`made` is evaluated after it), and one that ends it. */
#define MAKES(name, parameters, arguments, made, size, kind)     \
	CUresult replaced_##name parameters;                     \
	CUresult replaced_##name parameters                      \
	{                                                        \
		CUresult(*real) parameters;                      \
		CUresult result;                                 \
                                                                 \
		real = real_function(ENTRY_##name);              \
		gate_enter();                                    \
		result = real arguments;                         \
		if (result == CUDA_SUCCESS)                      \
			other_add((uint64_t)(made), size, kind); \
		gate_leave();                                    \
		return result;                                   \
	}

#define ENDS(name, parameters, arguments, ended)         \
	CUresult replaced_##name parameters;             \
	CUresult replaced_##name parameters              \
	{                                                \
		CUresult(*real) parameters;              \
		CUresult result;                         \
                                                         \
		real = real_function(ENTRY_##name);      \
		gate_enter();                            \
		result = real arguments;                 \
		if (result == CUDA_SUCCESS)              \
			other_remove((uint64_t)(ended)); \
		gate_leave();                            \
		return result;                           \
	}

MAKES(cuMemAllocAsync, (CUdeviceptr * address, size_t size, void *stream), (address, size, stream), *address,
      size, OTHER_ASYNC)
MAKES(cuMemAllocAsync_ptsz, (CUdeviceptr * address, size_t size, void *stream), (address, size, stream),
      *address, size, OTHER_ASYNC)
MAKES(cuMemAllocFromPoolAsync, (CUdeviceptr * address, size_t size, void *pool, void *stream),
      (address, size, pool, stream), *address, size, OTHER_ASYNC)
MAKES(cuMemAllocFromPoolAsync_ptsz, (CUdeviceptr * address, size_t size, void *pool, void *stream),
      (address, size, pool, stream), *address, size, OTHER_ASYNC)
MAKES(cuMemAllocManaged, (CUdeviceptr * address, size_t size, unsigned int flags), (address, size, flags),
      *address, size, OTHER_MANAGED)
MAKES(cuMemAllocHost_v2, (void **address, size_t size), (address, size), *address, size, OTHER_PINNED)
MAKES(cuMemHostAlloc, (void **address, size_t size, unsigned int flags), (address, size, flags), *address,
      size, OTHER_PINNED)
MAKES(cuMemHostRegister_v2, (void *address, size_t size, unsigned int flags), (address, size, flags), address,
      size, OTHER_PINNED)
ENDS(cuMemFreeHost, (void *address), (address), address)
ENDS(cuMemHostUnregister, (void *address), (address), address)

/* Legacy IPC: by value goes what the headers call CUipcMemHandle. */
struct ipc_handle {
	char reserved[64];
};

CUresult replaced_cuIpcGetMemHandle(struct ipc_handle *handle, CUdeviceptr address);
CUresult replaced_cuIpcGetMemHandle(struct ipc_handle *handle, CUdeviceptr address)
{
	CUresult (*real)(struct ipc_handle *, CUdeviceptr) = real_function(ENTRY_cuIpcGetMemHandle);
	CUresult result;

	gate_enter();
	atomic_fetch_add(&ipc_given, 1);
	result = real(handle, address);
	gate_leave();
	return result;
}

MAKES(cuIpcOpenMemHandle, (CUdeviceptr * address, struct ipc_handle handle, unsigned int flags),
      (address, handle, flags), *address, 0, OTHER_IPC)
MAKES(cuIpcOpenMemHandle_v2, (CUdeviceptr * address, struct ipc_handle handle, unsigned int flags),
      (address, handle, flags), *address, 0, OTHER_IPC)
MAKES(cuMemPoolImportPointer, (CUdeviceptr * address, void *pool, void *data), (address, pool, data),
      *address, 0, OTHER_IPC)
ENDS(cuIpcCloseMemHandle, (CUdeviceptr address), (address), address)
