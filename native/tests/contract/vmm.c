// SPDX-License-Identifier: Apache-2.0
/* Physical memory, address ranges, mappings. */
#include "contract.h"

#define SIZE (4 * MIB)

static const CUmemAllocationProp properties = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
};
static const CUmemAccessDesc both = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
				      CU_MEM_ACCESS_FLAGS_PROT_READWRITE };

static unsigned first_word(CUdeviceptr memory)
{
	unsigned word = 0;

	NEED(cu.MemcpyDtoH(&word, memory, sizeof(word)));
	return word;
}

static void physical(CUmemGenericAllocationHandle *handle)
{
	CUmemAllocationProp elsewhere = properties, seen = { 0 };
	CUmemGenericAllocationHandle other;
	size_t minimum = 0, recommended = 0, total, free_bytes;

	code("granularity", cu.MemGetAllocationGranularity(&minimum, &properties, 0));
	value("granularity-minimum", "%zu", minimum);
	NEED(cu.MemGetAllocationGranularity(&recommended, &properties, 1));
	value("granularity-recommended", "%zu", recommended);
	NEED(cu.MemGetInfo(&free_bytes, &total));
	code("create", cu.MemCreate(handle, SIZE, &properties, 0));
	code("create-zero", cu.MemCreate(&other, 0, &properties, 0));
	code("create-odd", cu.MemCreate(&other, SIZE + 4096, &properties, 0));
	code("create-flags", cu.MemCreate(&other, SIZE, &properties, 1));
	code("create-beyond-memory", cu.MemCreate(&other, (total / SIZE + 2) * SIZE, &properties, 0));
	elsewhere.location.id = 4711;
	code("create-elsewhere", cu.MemCreate(&other, SIZE, &elsewhere, 0));
	elsewhere = properties;
	elsewhere.type = CU_MEM_ALLOCATION_TYPE_INVALID;
	code("create-untyped", cu.MemCreate(&other, SIZE, &elsewhere, 0));
	code("properties", cu.MemGetAllocationPropertiesFromHandle(&seen, *handle));
	value("properties-are", "type %d handles %d location %d %d", (int)seen.type,
	      (int)seen.requestedHandleTypes, (int)seen.location.type, seen.location.id);
}

static void ranges(CUdeviceptr *range)
{
	CUdeviceptr other = 0, again = 0;

	code("reserve", cu.MemAddressReserve(range, 16 * SIZE, 0, 0, 0));
	yes("reserve-aligned", *range % (2 * MIB) == 0);
	code("reserve-zero", cu.MemAddressReserve(&other, 0, 0, 0, 0));
	code("reserve-odd", cu.MemAddressReserve(&other, SIZE + 4096, 0, 0, 0));
	code("reserve-alignment", cu.MemAddressReserve(&other, SIZE, 64 * MIB, 0, 0));
	yes("reserve-alignment-kept", other % (64 * MIB) == 0);
	code("address-free", cu.MemAddressFree(other, SIZE));
	code("reserve-there", cu.MemAddressReserve(&again, SIZE, 0, other, 0));
	yes("reserve-got-it", again == other);
	code("address-free-there", cu.MemAddressFree(again, SIZE));
	code("address-free-again", cu.MemAddressFree(again, SIZE));
}

static void mapping(CUdeviceptr range, CUmemGenericAllocationHandle handle)
{
	unsigned long long access = 77;
	CUdeviceptr base = 0;
	size_t size = 0;

	code("map", cu.MemMap(range, SIZE, 0, handle, 0));
	code("map-over", cu.MemMap(range, SIZE, 0, handle, 0));
	code("map-odd-address", cu.MemMap(range + SIZE + 4096, SIZE, 0, handle, 0));
	code("map-unreserved", cu.MemMap(0x1234000000, SIZE, 0, handle, 0));
	code("access-none", cu.MemGetAccess(&access, &both.location, range));
	value("access-none-is", "%llu", access);
	code("set-access", cu.MemSetAccess(range, SIZE, &both, 1));
	code("access", cu.MemGetAccess(&access, &both.location, range));
	value("access-is", "%llu", access);
	code("set-access-unmapped", cu.MemSetAccess(range + 8 * SIZE, SIZE, &both, 1));
	code("set", cu.MemsetD32(range, 0x11223344, SIZE / 4));
	value("content", "%08x", first_word(range + SIZE - 4));
	code("second-map", cu.MemMap(range + SIZE, SIZE, 0, handle, 0));
	NEED(cu.MemSetAccess(range + SIZE, SIZE, &both, 1));
	NEED(cu.MemsetD32(range + SIZE, 0x55667788, 1));
	value("second-view", "%08x %08x", first_word(range), first_word(range + 4));
	code("range-of-mapping", cu.MemGetAddressRange(&base, &size, range + SIZE + 100));
	yes("range-base", base == range + SIZE);
	value("range-size", "%zu", size);
	code("free-as-plain", cu.MemFree(range));
	code("copy-unmapped", cu.MemcpyDtoH(&access, range + 8 * SIZE, 8));
	code("unmap-part", cu.MemUnmap(range, SIZE / 2));
	code("address-free-mapped", cu.MemAddressFree(range, 16 * SIZE));
}

static void releasing(CUdeviceptr range, CUmemGenericAllocationHandle handle)
{
	CUmemGenericAllocationHandle retained = 0, second;

	code("retain", cu.MemRetainAllocationHandle(&retained, (void *)(uintptr_t)(range + 100)));
	yes("retain-same", retained == handle);
	code("release", cu.MemRelease(handle));
	code("release-retained", cu.MemRelease(retained));
	value("content-after-release", "%08x", first_word(range + 4));
	code("unmap", cu.MemUnmap(range, SIZE));
	value("second-view-stays", "%08x", first_word(range + SIZE + 4));
	code("unmap-again", cu.MemUnmap(range, SIZE));
	code("copy-after-unmap", cu.MemcpyDtoH(&second, range, 8));
	code("unmap-second", cu.MemUnmap(range + SIZE, SIZE));
	NEED(cu.MemCreate(&handle, SIZE, &properties, 0));
	NEED(cu.MemCreate(&second, SIZE, &properties, 0));
	code("map-first", cu.MemMap(range, SIZE, 0, handle, 0));
	code("map-behind", cu.MemMap(range + SIZE, SIZE, 0, second, 0));
	code("set-access-over-both", cu.MemSetAccess(range, 2 * SIZE, &both, 1));
	code("set-over-both", cu.MemsetD32(range, 0x99aabbcc, 2 * SIZE / 4));
	value("content-of-both", "%08x %08x", first_word(range), first_word(range + 2 * SIZE - 4));
	code("unmap-both", cu.MemUnmap(range, 2 * SIZE));
	code("release-first", cu.MemRelease(handle));
	code("release-second", cu.MemRelease(second));
	code("address-free-all", cu.MemAddressFree(range, 16 * SIZE));
	code("synchronize", cu.CtxSynchronize());
}

void group_vmm(void)
{
	CUmemGenericAllocationHandle handle = 0;
	CUdeviceptr range = 0;

	contract_open();
	physical(&handle);
	ranges(&range);
	mapping(range, handle);
	releasing(range, handle);
}
