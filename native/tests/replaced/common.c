// SPDX-License-Identifier: Apache-2.0
#include "replaced.h"

#include "../../demo/kernels.h"

#include <time.h>

const CUmemAllocationProp properties = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
};
const CUmemAccessDesc both = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 }, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };

CUcontext open_primary(void)
{
	CUcontext ctx = NULL;

	NEED(CALL(cuInit, (unsigned), 0));
	NEED(CALL(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice), &ctx, 0));
	NEED(CALL(cuCtxSetCurrent, (CUcontext), ctx));
	return ctx;
}

CUdeviceptr allocate(size_t size)
{
	CUdeviceptr memory = 0;

	NEED(CALL(cuMemAlloc_v2, (CUdeviceptr *, size_t), &memory, size));
	return memory;
}

CUresult release(CUdeviceptr memory)
{
	return CALL(cuMemFree_v2, (CUdeviceptr), memory);
}

CUresult create(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *p)
{
	return CALL(cuMemCreate,
		    (CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, unsigned long long),
		    handle, size, p, 0);
}

CUdeviceptr reserve(size_t size)
{
	CUdeviceptr range = 0;

	NEED(CALL(cuMemAddressReserve, (CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long),
		  &range, size, 0, 0, 0));
	return range;
}

CUresult map(CUdeviceptr at, size_t size, size_t offset, CUmemGenericAllocationHandle handle)
{
	return CALL(cuMemMap, (CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long),
		    at, size, offset, handle, 0);
}

CUresult unmap(CUdeviceptr at, size_t size)
{
	return CALL(cuMemUnmap, (CUdeviceptr, size_t), at, size);
}

CUresult access_both(CUdeviceptr at, size_t size)
{
	return CALL(cuMemSetAccess, (CUdeviceptr, size_t, const CUmemAccessDesc *, size_t), at, size, &both,
		    1);
}

CUresult export(int *fd, CUmemGenericAllocationHandle handle)
{
	return CALL(cuMemExportToShareableHandle,
		    (void *, CUmemGenericAllocationHandle, CUmemAllocationHandleType, unsigned long long), fd,
		    handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
}

CUresult import(CUmemGenericAllocationHandle *handle, int fd)
{
	return CALL(cuMemImportFromShareableHandle,
		    (CUmemGenericAllocationHandle *, void *, CUmemAllocationHandleType), handle,
		    (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

unsigned first_word(CUdeviceptr memory)
{
	unsigned word = 0;

	NEED(CALL(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t), &word, memory, sizeof(word)));
	return word;
}

void synchronize(void)
{
	NEED(CALL(cuCtxSynchronize, (void)));
}

void spin(uint64_t ms, CUdeviceptr done)
{
	uint64_t ns = ms * 1000000;
	void *arguments[] = { &ns, &done };
	CUfunction kernel;
	CUmodule module;

	NEED(CALL(cuModuleLoadData, (CUmodule *, const void *), &module, kernels_ptx));
	NEED(CALL(cuModuleGetFunction, (CUfunction *, CUmodule, const char *), &kernel, module, "spin"));
	NEED(CALL(cuLaunchKernel,
		  (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
		   void **, void **),
		  kernel, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
}

double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}
