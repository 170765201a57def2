// SPDX-License-Identifier: Apache-2.0
/* Copies in every direction, synchronous and not, and memsets: content and refusals. */
#include "contract.h"

#include <stdlib.h>
#include <string.h>

#define SIZE (MIB + 12)

static unsigned char *host, *back;

static void pattern(unsigned seed)
{
	for (size_t i = 0; i < SIZE; i++)
		host[i] = (unsigned char)((i * 7 + seed) >> (i % 3));
	memset(back, 0, SIZE);
}

static bool arrived(void)
{
	return memcmp(host, back, SIZE) == 0;
}

static void synchronous(CUdeviceptr a, CUdeviceptr b)
{
	pattern(1);
	code("up", cu.MemcpyHtoD(a, host, SIZE));
	code("across", cu.MemcpyDtoD(b, a, SIZE));
	code("down", cu.MemcpyDtoH(back, b, SIZE));
	yes("there-and-back", arrived());
	pattern(2);
	code("unified-up", cu.Memcpy(b, (CUdeviceptr)(uintptr_t)host, SIZE));
	code("unified-across", cu.Memcpy(a, b, SIZE));
	code("unified-down", cu.Memcpy((CUdeviceptr)(uintptr_t)back, a, SIZE));
	yes("unified-there-and-back", arrived());
	code("within", cu.MemcpyDtoD(a, a + SIZE / 2, SIZE / 2));
	NEED(cu.MemcpyDtoH(back, a, SIZE / 2));
	yes("within-content", memcmp(back, host + SIZE / 2, SIZE / 2) == 0);
	pattern(3);
	NEED(cu.MemcpyHtoD(a, host, SIZE));
	code("odd-address", cu.MemcpyHtoD(b + 1, host + 1, SIZE - 1));
	NEED(cu.MemcpyHtoD(b, host, 1));
	NEED(cu.MemcpyDtoH(back, b, SIZE));
	yes("odd-content", arrived());
}

static void asynchronous(CUdeviceptr a, CUdeviceptr b)
{
	CUstream stream;

	NEED(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	pattern(4);
	code("async-up", cu.MemcpyHtoDAsync(a, host, SIZE, stream));
	code("async-across", cu.MemcpyDtoDAsync(b, a, SIZE, stream));
	code("async-down", cu.MemcpyDtoHAsync(back, b, SIZE, stream));
	NEED(cu.StreamSynchronize(stream));
	yes("async-there-and-back", arrived());
	pattern(5);
	code("async-unified-up", cu.MemcpyAsync(b, (CUdeviceptr)(uintptr_t)host, SIZE, stream));
	code("async-unified-down", cu.MemcpyAsync((CUdeviceptr)(uintptr_t)back, b, SIZE, stream));
	NEED(cu.StreamSynchronize(stream));
	yes("async-unified-there-and-back", arrived());
	NEED(cu.StreamDestroy(stream));
}

static void sets(CUdeviceptr a)
{
	unsigned words[4] = { 0 };

	code("set8", cu.MemsetD8(a, 0x11, SIZE));
	code("set16", cu.MemsetD16(a + 4, 0x2222, 2));
	code("set32", cu.MemsetD32(a + 8, 0x33445566, 1));
	NEED(cu.MemcpyDtoH(words, a, sizeof(words)));
	value("set-content", "%08x %08x %08x %08x", words[0], words[1], words[2], words[3]);
	code("set2d", cu.MemsetD2D8(a, 8, 0x77, 2, 2));
	NEED(cu.MemcpyDtoH(words, a, sizeof(words)));
	value("set2d-content", "%08x %08x %08x %08x", words[0], words[1], words[2], words[3]);
	code("set-none", cu.MemsetD8(a, 0, 0));
	code("set-beyond", cu.MemsetD8(a, 0, SIZE + 4 * MIB));
	code("set-null", cu.MemsetD8(0, 0, 16));
	code("set32-misaligned", cu.MemsetD32(a + 2, 0, 1));
	code("set16-misaligned", cu.MemsetD16(a + 1, 0, 1));
	code("set-async-null", cu.MemsetD8Async(0, 0, 16, NULL));
	code("synchronize", cu.CtxSynchronize());
}

static void refusals(CUdeviceptr a)
{
	code("none", cu.MemcpyDtoH(back, a, 0));
	code("up-beyond", cu.MemcpyHtoD(a + SIZE - 4, host, 8 * MIB));
	code("down-beyond", cu.MemcpyDtoH(host, a + SIZE - 4, 8 * MIB));
	code("up-null", cu.MemcpyHtoD(0, host, 16));
	code("down-null", cu.MemcpyDtoH(host, 0, 16));
	code("down-to-null", cu.MemcpyDtoH(NULL, a, 16));
	code("across-null", cu.MemcpyDtoD(a, 0, 16));
	code("up-unknown", cu.MemcpyHtoD(0x1234000, host, 16));
	code("async-up-unknown", cu.MemcpyHtoDAsync(0x1234000, host, 16, NULL));
	code("synchronize-after", cu.CtxSynchronize());
}

void group_copy(void)
{
	CUdeviceptr a, b;

	contract_open();
	host = malloc(8 * MIB);
	back = malloc(8 * MIB);
	if (!host || !back)
		need("malloc", CUDA_ERROR_OUT_OF_MEMORY);
	NEED(cu.MemAlloc(&a, SIZE));
	NEED(cu.MemAlloc(&b, SIZE));
	synchronous(a, b);
	asynchronous(a, b);
	sets(a);
	refusals(a);
	NEED(cu.MemFree(a));
	code("down-after-free", cu.MemcpyDtoH(host, a, 16));
}
