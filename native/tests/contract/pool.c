// SPDX-License-Identifier: Apache-2.0
/* Allocation in stream order, from the default pool and from one of our own. */
#include "contract.h"

enum { RELEASE_THRESHOLD = 4, USED_CURRENT = 7 }; /* CU_MEMPOOL_ATTR_* */

static uint64_t used(CUmemoryPool pool)
{
	uint64_t bytes = 0;

	NEED(cu.MemPoolGetAttribute(pool, USED_CURRENT, &bytes));
	return bytes;
}

static unsigned first_word(CUdeviceptr memory)
{
	unsigned word = 0;

	NEED(cu.MemcpyDtoH(&word, memory, sizeof(word)));
	return word;
}

static void default_pool(CUstream stream)
{
	CUmemoryPool pool = NULL;
	CUdeviceptr memory = 0, plain = 0;
	uint64_t threshold = 77;
	unsigned type = 0;

	code("default", cu.DeviceGetDefaultMemPool(&pool, 0));
	code("threshold", cu.MemPoolGetAttribute(pool, RELEASE_THRESHOLD, &threshold));
	value("threshold-is", "%llu", (unsigned long long)threshold);
	code("alloc-zero", cu.MemAllocAsync(&memory, 0, stream));
	code("alloc-null", cu.MemAllocAsync(NULL, 4096, stream));
	code("alloc", cu.MemAllocAsync(&memory, 3 * MIB, stream));
	yes("aligned", memory % 256 == 0);
	code("set", cu.MemsetD32Async(memory, 0x01020304, 3 * MIB / 4, stream));
	NEED(cu.StreamSynchronize(stream));
	value("content", "%08x", first_word(memory + 3 * MIB - 4));
	yes("used", used(pool) >= 3 * MIB);
	code("type", cu.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory));
	value("type-is", "%u", type);
	code("free", cu.MemFreeAsync(memory, stream));
	NEED(cu.StreamSynchronize(stream));
	yes("used-after-free", used(pool) == 0);
	code("free-twice", cu.MemFreeAsync(memory, stream));
	code("free-null", cu.MemFreeAsync(0, stream));
	NEED(cu.MemAllocAsync(&memory, MIB, stream));
	NEED(cu.StreamSynchronize(stream));
	code("free-as-plain", cu.MemFree(memory));
	NEED(cu.MemAlloc(&plain, MIB));
	code("free-plain-async", cu.MemFreeAsync(plain, stream));
	code("trim", cu.MemPoolTrimTo(pool, 0));
	code("destroy-default", cu.MemPoolDestroy(pool));
	code("synchronize", cu.CtxSynchronize());
}

static void own_pool(CUstream stream)
{
	CUmemPoolProps properties = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				      .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
	CUmemoryPool pool = NULL;
	CUdeviceptr memory = 0;
	uint64_t threshold = 64 * MIB;

	code("create", cu.MemPoolCreate(&pool, &properties));
	code("set-threshold", cu.MemPoolSetAttribute(pool, RELEASE_THRESHOLD, &threshold));
	code("alloc-from", cu.MemAllocFromPoolAsync(&memory, MIB, pool, stream));
	NEED(cu.MemsetD32Async(memory, 0x0a0b0c0d, MIB / 4, stream));
	NEED(cu.StreamSynchronize(stream));
	value("content-from", "%08x", first_word(memory));
	code("free-from", cu.MemFreeAsync(memory, stream));
	NEED(cu.StreamSynchronize(stream));
	code("destroy", cu.MemPoolDestroy(pool));
	properties.location.id = 4711;
	code("create-elsewhere", cu.MemPoolCreate(&pool, &properties));
}

void group_pool(void)
{
	CUstream stream;

	contract_open();
	NEED(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	default_pool(stream);
	own_pool(stream);
}
