// SPDX-License-Identifier: Apache-2.0
/* Host memory that the device uses, and managed memory. */
#include "contract.h"

#include "../../demo/model.h"

#include <string.h>
#include <sys/mman.h>

#define WORDS (MIB / sizeof(uint64_t))

/* The device fills it, the CPU reads it; the CPU changes it, the device sums it up. */
static bool works_both_ways(const struct kernels *k, uint64_t *words)
{
	struct model model = model_fill(WORDS, 9);
	CUdeviceptr at = (CUdeviceptr)(uintptr_t)words;

	launch_fill(k, at, WORDS, 9, NULL);
	NEED(cu.CtxSynchronize());
	if (checksum_words(words, WORDS) != model.sum)
		return false;
	for (size_t i = 0; i < WORDS; i++)
		words[i] = words[i] * KERNEL_MULTIPLIER + KERNEL_INCREMENT;
	model_step(&model);
	return checksum(k, at, WORDS) == model.sum;
}

static void allocated(const struct kernels *k)
{
	uint64_t *words = NULL;
	void *other;
	CUdeviceptr device = 0;
	unsigned type = 0, flags = 77;
	size_t size = 0;

	code("alloc", cu.MemHostAlloc((void **)&words, MIB, 0));
	code("alloc-zero", cu.MemHostAlloc(&other, 0, 0));
	code("alloc-null", cu.MemHostAlloc(NULL, 4096, 0));
	code("alloc-flags", cu.MemHostAlloc(&other, 4096, 0x4000));
	yes("alloc-aligned", (uintptr_t)words % 4096 == 0);
	code("device-pointer", cu.MemHostGetDevicePointer(&device, words, 0));
	yes("device-pointer-same", device == (uintptr_t)words);
	code("flags", cu.MemHostGetFlags(&flags, words));
	code("type", cu.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device));
	value("type-is", "%u", type);
	code("range-size", cu.PointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, device));
	yes("works-both-ways", works_both_ways(k, words));
	code("free-as-device", cu.MemFree(device));
	code("free-middle", cu.MemFreeHost(words + 1));
	code("free", cu.MemFreeHost(words));
	code("free-twice", cu.MemFreeHost(words));
	code("free-stack", cu.MemFreeHost(&size));
	code("old-alloc", cu.MemAllocHost((void **)&words, MIB));
	code("old-free", cu.MemFreeHost(words));
}

static void registered(const struct kernels *k)
{
	CUdeviceptr device = 0;
	unsigned type = 0;
	char *room = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t *words = (uint64_t *)(room + MIB);

	if (room == MAP_FAILED)
		need("mmap", CUDA_ERROR_OUT_OF_MEMORY);
	code("register", cu.MemHostRegister(words, MIB, 0));
	code("register-again", cu.MemHostRegister(words, MIB, 0));
	code("register-overlap", cu.MemHostRegister(room + MIB / 2, MIB, 0));
	code("register-zero", cu.MemHostRegister(room, 0, 0));
	code("register-null", cu.MemHostRegister(NULL, 4096, 0));
	code("register-flags", cu.MemHostRegister(room, 4096, 0x4000));
	code("registered-pointer", cu.MemHostGetDevicePointer(&device, words, 0));
	yes("registered-pointer-same", device == (uintptr_t)words);
	code("registered-type", cu.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device));
	value("registered-type-is", "%u", type);
	yes("registered-works-both-ways", works_both_ways(k, words));
	code("free-registered", cu.MemFreeHost(words));
	code("unregister-middle", cu.MemHostUnregister(words + 1024));
	code("unregister", cu.MemHostUnregister(words));
	code("unregister-again", cu.MemHostUnregister(words));
	code("unregister-never", cu.MemHostUnregister(room));
	code("register-odd", cu.MemHostRegister(room + 100, 5000, 0));
	code("unregister-odd", cu.MemHostUnregister(room + 100));
	munmap(room, 4 * MIB);
}

void group_host(void)
{
	struct kernels k;

	contract_open();
	contract_kernels(&k);
	allocated(&k);
	registered(&k);
}

void group_managed(void)
{
	CUdeviceptr memory = 0;
	struct kernels k;
	unsigned type = 0;
	int managed = 0;

	contract_open();
	contract_kernels(&k);
	code("alloc-zero", cu.MemAllocManaged(&memory, 0, CU_MEM_ATTACH_GLOBAL));
	code("alloc-no-flags", cu.MemAllocManaged(&memory, MIB, 0));
	code("alloc-null", cu.MemAllocManaged(NULL, MIB, CU_MEM_ATTACH_GLOBAL));
	code("alloc", cu.MemAllocManaged(&memory, MIB, CU_MEM_ATTACH_GLOBAL));
	yes("works-both-ways", works_both_ways(&k, (uint64_t *)(uintptr_t)memory));
	code("type", cu.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory));
	value("type-is", "%u", type);
	code("managed", cu.PointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, memory));
	value("managed-is", "%d", managed & 0xff);
	code("free-middle", cu.MemFree(memory + 4096));
	code("free", cu.MemFree(memory));
	code("free-twice", cu.MemFree(memory));
}
