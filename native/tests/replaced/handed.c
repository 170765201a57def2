// SPDX-License-Identifier: Apache-2.0
/* Functions of the driver's own that are handed memory of cuMemAlloc; and look-ups by name. */
#include "replaced.h"

#include <string.h>

static void copies(CUdeviceptr large, CUdeviceptr small)
{
	char text[64] = "all of it is the same memory";

	code("to", CALL(cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t), small, text, sizeof(text)));
	code("between",
	     CALL(cuMemcpyDtoD_v2, (CUdeviceptr, CUdeviceptr, size_t), large + MIB, small, sizeof(text)));
	code("generic",
	     CALL(cuMemcpy, (CUdeviceptr, CUdeviceptr, size_t), large + 3 * MIB, large + MIB, sizeof(text)));
	code("peer", CALL(cuMemcpyPeer, (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t), small, NULL,
			  large + 3 * MIB, NULL, sizeof(text)));
	memset(text, 0, sizeof(text));
	code("from", CALL(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t), text, small, sizeof(text)));
	value("text", "%s", text);
	code("beyond-end", CALL(cuMemsetD8_v2, (CUdeviceptr, unsigned char, size_t), large, 0, 64 * MIB));
	code("across", CALL(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t), text, large + 5 * MIB - 8, 8));
	code("two-dimensional", CALL(cuMemsetD2D32_v2, (CUdeviceptr, size_t, unsigned, size_t, size_t), large,
				     4096, 0x12345678, 1000, 100));
	value("two-dimensional-is", "%08x", first_word(large + 99 * 4096 + 3996));
}

static void others(CUdeviceptr large, CUdeviceptr small)
{
	CUmemLocation here = { CU_MEM_LOCATION_TYPE_DEVICE, 0 };
	unsigned char handle[64];
	unsigned long long access = 77;
	void *host = NULL;
	int fd = -1;

	code("ipc-get", CALL(cuIpcGetMemHandle, (void *, CUdeviceptr), handle, large));
	code("ipc-get-middle", CALL(cuIpcGetMemHandle, (void *, CUdeviceptr), handle, large + MIB));
	code("ipc-get-small", CALL(cuIpcGetMemHandle, (void *, CUdeviceptr), handle, small));
	code("ipc-get-unknown", CALL(cuIpcGetMemHandle, (void *, CUdeviceptr), handle, 0x1234000));
	code("dma-buf",
	     CALL(cuMemGetHandleForAddressRange, (void *, CUdeviceptr, size_t, int, unsigned long long), &fd,
		  large, 4 * MIB, 1, 0));
	code("get-access", CALL(cuMemGetAccess, (unsigned long long *, const CUmemLocation *, CUdeviceptr),
				&access, &here, large));
	value("access-is", "%llu", access);
	code("register",
	     CALL(cuMemHostRegister_v2, (void *, size_t, unsigned), (void *)(uintptr_t)large, 4096, 0));
	code("host-pointer", CALL(cuMemHostGetDevicePointer_v2, (void *, void *, unsigned), &host,
				  (void *)(uintptr_t)large, 0));
	code("host-flags",
	     CALL(cuMemHostGetFlags, (unsigned *, void *), (unsigned *)handle, (void *)(uintptr_t)large));
	code("free-host", CALL(cuMemFreeHost, (void *), (void *)(uintptr_t)small));
	code("attach",
	     CALL(cuStreamAttachMemAsync, (CUstream, CUdeviceptr, size_t, unsigned), NULL, large, 0, 1));
	code("read-only", CALL(cuPointerSetAttribute, (const void *, int, CUdeviceptr), &access, 2, large));
	code("peer-self", CALL(cuCtxEnablePeerAccess, (CUcontext, unsigned), NULL, 0));
}

static void pools(void)
{
	CUdeviceptr pooled = 0, plain = allocate(3 * MIB), small = allocate(100);

	code("pool-alloc", CALL(cuMemAllocAsync, (CUdeviceptr *, size_t, CUstream), &pooled, 4096, NULL));
	code("pool-free-plainly", release(pooled));
	code("plain-free-to-pool", CALL(cuMemFreeAsync, (CUdeviceptr, CUstream), plain, NULL));
	code("plain-free-to-pool-waits", CALL(cuCtxSynchronize, (void)));
	code("small-free-to-pool", CALL(cuMemFreeAsync, (CUdeviceptr, CUstream), small, NULL));
	code("synchronize", CALL(cuCtxSynchronize, (void)));
}

void group_handed(void)
{
	CUdeviceptr large, small;

	open_primary();
	large = allocate(5 * MIB);
	small = allocate(1000);
	copies(large, small);
	others(large, small);
	code("free-large", release(large));
	code("free-small", release(small));
	pools();
}

void group_lookup(void)
{
	static const char *const names[] = {
		"cuMemAlloc",
		"cuMemAllocPitch",
		"cuMemFree",
		"cuMemGetAddressRange",
		"cuPointerGetAttribute",
		"cuPointerGetAttributes",
		"cuMemCreate",
		"cuMemRelease",
		"cuMemMap",
		"cuMemUnmap",
		"cuMemSetAccess",
		"cuMemExportToShareableHandle",
		"cuMemImportFromShareableHandle",
		"cuMemRetainAllocationHandle",
		"cuMemGetAllocationPropertiesFromHandle",
		"cuMulticastBindMem",
		"cuCtxCreate",
		"cuCtxDestroy",
		"cuDevicePrimaryCtxRetain",
		"cuDevicePrimaryCtxRelease",
		"cuDevicePrimaryCtxReset",
		"cuLaunchHostFunc",
		"cuStreamAddCallback",
		"cuGetProcAddress",
	};
	static const int versions[] = { 2000, 3020, 10020, 11000, 12000, 13000 };
	void *found;
	int status;

	for (size_t n = 0; n < ARRAY_SIZE(names); n++) {
		for (size_t v = 0; v < ARRAY_SIZE(versions); v++) {
			found = NULL;
			status = 77;
			codes(CALL(cuGetProcAddress_v2, (const char *, void **, int, uint64_t, int *),
				   names[n], &found, versions[v], 0, &status),
			      "%s-%d", names[n], versions[v]);
			value("found", "%s %d: %d %s", names[n], versions[v], status, found ? "one" : "none");
		}
	}
}
