// SPDX-License-Identifier: Apache-2.0
/* Device memory: sizes, addresses, refusals; and what the driver says about a pointer. */
#include "contract.h"

#include <stdlib.h>

#define MANY 1000

static void refusals(CUdeviceptr memory)
{
	CUdeviceptr other;
	size_t total = 0, free_bytes = 0;

	NEED(cu.MemGetInfo(&free_bytes, &total));
	code("alloc-zero", cu.MemAlloc(&other, 0));
	code("alloc-null", cu.MemAlloc(NULL, 4096));
	code("alloc-beyond-memory", cu.MemAlloc(&other, total + MIB));
	code("alloc-beyond-everything", cu.MemAlloc(&other, SIZE_MAX));
	code("free-null", cu.MemFree(0));
	code("free-middle", cu.MemFree(memory + 512));
	code("free-unknown", cu.MemFree(0x1234000));
	code("free-host", cu.MemFree((CUdeviceptr)(uintptr_t)&other));
}

static void range(CUdeviceptr memory, size_t size)
{
	CUdeviceptr base = 0;
	size_t length = 0;

	code("range-middle", cu.MemGetAddressRange(&base, &length, memory + size / 2));
	yes("range-base", base == memory);
	yes("range-size", length == size);
	code("range-last", cu.MemGetAddressRange(&base, &length, memory + size - 1));
	code("range-null-outputs", cu.MemGetAddressRange(NULL, NULL, memory));
	code("range-unknown", cu.MemGetAddressRange(&base, &length, 0x1234000));
	code("range-zero", cu.MemGetAddressRange(&base, &length, 0));
}

static void pitch(void)
{
	CUdeviceptr memory = 0;
	size_t bytes = 0;

	code("pitch", cu.MemAllocPitch(&memory, &bytes, 1000, 16, 4));
	yes("pitch-wide-enough", bytes >= 1000 && bytes % 256 == 0);
	code("pitch-free", cu.MemFree(memory));
	code("pitch-element", cu.MemAllocPitch(&memory, &bytes, 1000, 16, 3));
	code("pitch-no-width", cu.MemAllocPitch(&memory, &bytes, 0, 16, 4));
	code("pitch-no-height", cu.MemAllocPitch(&memory, &bytes, 1000, 0, 4));
}

/* Small allocations share pages: none may touch another, nor lie at an odd place. */
static void many(void)
{
	CUdeviceptr memory[MANY];
	unsigned bad = 0, odd = 0, word;

	for (unsigned i = 0; i < MANY; i++) {
		NEED(cu.MemAlloc(&memory[i], 4 + i % 700));
		odd += memory[i] % 256 != 0;
		NEED(cu.MemsetD8(memory[i], (unsigned char)i, 4 + i % 700));
	}
	for (unsigned i = 0; i < MANY; i += 2)
		NEED(cu.MemFree(memory[i]));
	for (unsigned i = 0; i < MANY; i += 4) {
		NEED(cu.MemAlloc(&memory[i], 4 + i % 700));
		NEED(cu.MemsetD8(memory[i], 0xee, 4 + i % 700));
	}
	for (unsigned i = 1; i < MANY; i += 2) {
		NEED(cu.MemcpyDtoH(&word, memory[i], sizeof(word)));
		bad += word != (i & 0xff) * 0x01010101u;
	}
	yes("many-aligned", !odd);
	yes("many-keep-content", !bad);
}

void group_memory(void)
{
	size_t total = 0, before = 0, after = 0, length = 0;
	CUdeviceptr memory = 0, one = 0, base;

	contract_open();
	code("info", cu.MemGetInfo(&before, &total));
	yes("info-plausible", before && before <= total);
	code("alloc", cu.MemAlloc(&memory, 64 * MIB + 100));
	yes("alloc-aligned", memory && memory % 512 == 0);
	NEED(cu.MemGetInfo(&after, &total));
	yes("info-after-alloc", before - after >= 64 * MIB);
	refusals(memory);
	range(memory, 64 * MIB + 100);
	code("alloc-one", cu.MemAlloc(&one, 1));
	yes("one-aligned", one % 256 == 0);
	code("one-range", cu.MemGetAddressRange(&base, &length, one));
	value("one-size", "%zu", length);
	code("one-free", cu.MemFree(one));
	code("free", cu.MemFree(memory));
	code("free-twice", cu.MemFree(memory));
	code("range-after-free", cu.MemGetAddressRange(&base, &length, memory));
	NEED(cu.MemGetInfo(&after, &total));
	yes("info-after-free", after + MIB * 8 >= before);
	pitch();
	many();
}

static void of_unknown(CUdeviceptr unknown)
{
	CUpointer_attribute which[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
					CU_POINTER_ATTRIBUTE_DEVICE_POINTER };
	CUdeviceptr pointer = 77;
	unsigned type = 77;
	void *into[] = { &type, &pointer };

	code("unknown-type", cu.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, unknown));
	code("unknown-all", cu.PointerGetAttributes(2, which, into, unknown));
	value("unknown-answers", "type %u pointer %llu", type, pointer);
}

void group_pointer(void)
{
	CUdeviceptr memory, pointer = 0, start = 0;
	CUcontext ctx = NULL;
	unsigned type = 0;
	size_t size = 0;
	void *host = NULL, *other;
	int ordinal = 77, managed = 77;

	contract_open();
	NEED(cu.MemAlloc(&memory, 1000000));
	code("type", cu.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory + 5000));
	value("type-is", "%u", type);
	code("context", cu.PointerGetAttribute(&ctx, CU_POINTER_ATTRIBUTE_CONTEXT, memory));
	yes("context-is-ours", ctx == contract_context);
	code("device", cu.PointerGetAttribute(&pointer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, memory + 5000));
	yes("device-same", pointer == memory + 5000);
	code("host", cu.PointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, memory));
	code("ordinal", cu.PointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory));
	value("ordinal-is", "%d", ordinal);
	code("managed", cu.PointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, memory));
	value("managed-is", "%d", managed & 0xff);
	code("start", cu.PointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, memory + 5000));
	yes("start-is-base", start == memory);
	code("size", cu.PointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, memory + 5000));
	yes("size-as-asked", size == 1000000);
	code("attribute-unknown", cu.PointerGetAttribute(&size, 4711, memory));
	code("null", cu.PointerGetAttribute(NULL, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory));
	other = malloc(4096);
	of_unknown((CUdeviceptr)(uintptr_t)other);
	free(other);
}
