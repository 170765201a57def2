// SPDX-License-Identifier: Apache-2.0
/* cuMemAlloc, cuMemAllocPitch, cuMemFree, cuMemGetAddressRange. */
#include "replaced.h"

#include <stdlib.h>

static const size_t sizes[] = {
	1,   4,	      511,	   512,	    513,	 4096,	  65536,	65537,		MIB - 1,
	MIB, MIB + 1, 2 * MIB - 1, 2 * MIB, 2 * MIB + 1, 3 * MIB, 32 * MIB + 3, 64 * MIB + 100,
};

static CUresult alloc(CUdeviceptr *memory, size_t size)
{
	return CALL(cuMemAlloc_v2, (CUdeviceptr *, size_t), memory, size);
}

static CUresult range_of(CUdeviceptr *base, size_t *size, CUdeviceptr memory)
{
	return CALL(cuMemGetAddressRange_v2, (CUdeviceptr *, size_t *, CUdeviceptr), base, size, memory);
}

static CUresult pitched(CUdeviceptr *memory, size_t *pitch, size_t width, size_t height, unsigned element)
{
	return CALL(cuMemAllocPitch_v2, (CUdeviceptr *, size_t *, size_t, size_t, unsigned), memory, pitch,
		    width, height, element);
}

static CUresult set(CUdeviceptr memory, unsigned char byte, size_t size)
{
	return CALL(cuMemsetD8_v2, (CUdeviceptr, unsigned char, size_t), memory, byte, size);
}

static size_t free_bytes(size_t *total)
{
	size_t bytes = 0;

	NEED(CALL(cuMemGetInfo_v2, (size_t *, size_t *), &bytes, total));
	return bytes;
}

static void calls(const char *when)
{
	CUdeviceptr memory = 77, base = 77;
	size_t size = 77;
	unsigned type = 77;

	codes(alloc(&memory, 4096), "%s-alloc", when);
	codes(alloc(NULL, 4096), "%s-alloc-null", when);
	codes(alloc(&memory, 0), "%s-alloc-zero", when);
	codes(pitched(&memory, &size, 100, 100, 4), "%s-pitch", when);
	codes(release(0), "%s-free-null", when);
	codes(release(0x1234000), "%s-free", when);
	codes(range_of(&base, &size, 0x1234000), "%s-range", when);
	codes(CALL(cuPointerGetAttribute, (void *, int, CUdeviceptr), &type, 2, 0x1234000), "%s-attribute",
	      when);
	yes("outputs-untouched", memory == 77 && base == 77 && size == 77 && type == 77);
}

void group_before(void)
{
	calls("uninitialized");
	NEED(CALL(cuInit, (unsigned), 0));
	calls("without-context");
	open_primary();
	calls("with-context");
}

void group_allocate(void)
{
	CUdeviceptr memory[ARRAY_SIZE(sizes)], base;
	unsigned char byte;
	size_t size;

	open_primary();
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		codes(alloc(&memory[i], sizes[i]), "%zu", sizes[i]);
		base = size = 0;
		codes(range_of(&base, &size, memory[i] + sizes[i] - 1), "%zu-range", sizes[i]);
		value("range", "%zu bytes, %llu before", size, memory[i] - base);
		yes("aligned", memory[i] % 512 == 0);
		codes(set(memory[i], (unsigned char)(i + 1), sizes[i]), "%zu-set", sizes[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		NEED(CALL(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t), &byte, memory[i] + sizes[i] - 1,
			  1));
		value("last-byte", "%d", byte);
		NEED(CALL(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t), &byte, memory[i], 1));
		value("first-byte", "%d", byte);
	}
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		codes(release(memory[i]), "%zu-free", sizes[i]);
	synchronize();
}

void group_refuse(void)
{
	CUdeviceptr memory = 0, untouched = 77;
	size_t total;

	open_primary();
	free_bytes(&total);
	code("zero", alloc(&untouched, 0));
	code("null", alloc(NULL, 4096));
	code("null-zero", alloc(NULL, 0));
	code("beyond-memory", alloc(&untouched, total + MIB));
	code("beyond-everything", alloc(&untouched, SIZE_MAX));
	code("beyond-window", alloc(&untouched, (size_t)1 << 47));
	yes("output-untouched", untouched == 77);
	code("afterwards", CALL(cuCtxSynchronize, (void)));
	code("alloc-afterwards", alloc(&memory, MIB));
	code("free-afterwards", release(memory));
}

void group_release(void)
{
	CUdeviceptr memory, neighbour, done, host = (CUdeviceptr)(uintptr_t)malloc(4096);
	static char here[64];
	double start;

	open_primary();
	memory = allocate(3 * MIB);
	neighbour = allocate(4096);
	code("null", release(0));
	code("middle", release(memory + 512));
	code("middle-of-small", release(neighbour + 512));
	code("last-byte", release(memory + 3 * MIB - 1));
	code("unknown", release(0x1234000));
	code("heap", release(host));
	code("static", release((CUdeviceptr)(uintptr_t)here));
	code("largest", release(~0ull));
	code("large", release(memory));
	code("large-twice", release(memory));
	code("small", release(neighbour));
	code("small-twice", release(neighbour));
	memory = allocate(3 * MIB);
	done = allocate(8);
	NEED(set(done, 0, 8));
	spin(300, done);
	start = now_ms();
	code("while-busy", release(memory));
	yes("waits-for-the-device", now_ms() - start > 150);
	value("done", "%u", first_word(done));
	spin(300, done);
	memory = allocate(4096);
	start = now_ms();
	code("small-while-busy", release(memory));
	yes("small-waits-for-the-device", now_ms() - start > 150);
	code("copy-after-free", CALL(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t), here, 0x1234000, 8));
	code("afterwards", CALL(cuCtxSynchronize, (void)));
}

void group_pitch(void)
{
	static const size_t widths[] = { 1, 100, 512, 513, 1000, 4096, 5000, 65537 };
	static const unsigned elements[] = { 4, 8, 16 };
	CUdeviceptr memory = 0, base;
	size_t pitch, size;

	open_primary();
	for (size_t w = 0; w < ARRAY_SIZE(widths); w++) {
		for (size_t e = 0; e < ARRAY_SIZE(elements); e++) {
			pitch = size = 0;
			codes(pitched(&memory, &pitch, widths[w], 33, elements[e]), "%zu-by-%u", widths[w],
			      elements[e]);
			value("pitch", "%zu", pitch);
			codes(range_of(&base, &size, memory + 32 * pitch), "%zu-range", widths[w]);
			value("size", "%zu", size);
			codes(release(memory), "%zu-free", widths[w]);
		}
	}
	for (unsigned element = 0; element < 33; element += 3)
		codes(pitched(&memory, &pitch, 1000, 16, element), "element-%u", element);
	code("no-width", pitched(&memory, &pitch, 0, 16, 4));
	code("no-height", pitched(&memory, &pitch, 1000, 0, 4));
	code("null", pitched(NULL, &pitch, 1000, 16, 4));
	code("null-pitch", pitched(&memory, NULL, 1000, 16, 4));
	code("too-wide", pitched(&memory, &pitch, (size_t)1 << 40, 16, 4));
	code("too-high", pitched(&memory, &pitch, 1000, (size_t)1 << 40, 4));
	code("overflow", pitched(&memory, &pitch, (size_t)1 << 33, (size_t)1 << 33, 4));
}

void group_range(void)
{
	CUdeviceptr memory, small, base = 0;
	size_t size = 0;

	open_primary();
	memory = allocate(3 * MIB + 100);
	small = allocate(100);
	code("first", range_of(&base, &size, memory));
	value("first-is", "%d %zu", base == memory, size);
	code("last", range_of(&base, &size, memory + 3 * MIB + 99));
	value("last-is", "%d %zu", base == memory, size);
	code("small-last", range_of(&base, &size, small + 99));
	value("small-last-is", "%d %zu", base == small, size);
	code("no-base", range_of(NULL, &size, memory + 5));
	code("no-size", range_of(&base, NULL, memory + 5));
	code("no-outputs", range_of(NULL, NULL, memory + 5));
	base = size = 77;
	code("unknown", range_of(&base, &size, 0x1234000));
	code("null", range_of(&base, &size, 0));
	code("null-no-outputs", range_of(NULL, NULL, 0));
	code("host", range_of(&base, &size, (CUdeviceptr)(uintptr_t)&base));
	yes("outputs-untouched", base == 77 && size == 77);
	NEED(release(memory));
	code("freed", range_of(&base, &size, memory));
}

/* All memory, in pieces: what does not fit is refused, and nothing is the worse for it. */
void group_exhaust(void)
{
	CUdeviceptr piece[64];
	size_t total, before, after, size, count = 0;
	CUresult result = CUDA_SUCCESS;

	open_primary();
	before = free_bytes(&total);
	size = total / 16 / MIB * MIB;
	while (count < ARRAY_SIZE(piece) && !(result = alloc(&piece[count], size)))
		count++;
	code("refused", result);
	yes("as-many-as-fit", count >= before / size - 1 && count <= before / size);
	code("again", alloc(&piece[count], size));
	code("pitch", pitched(&piece[count], &after, size, 1, 4));
	code("not-sticky", CALL(cuCtxSynchronize, (void)));
	for (size_t i = 0; i < count; i++)
		NEED(release(piece[i]));
	after = free_bytes(&total);
	yes("comes-back", after + 128 * MIB >= before);
	code("all-at-once", alloc(&piece[0], (before - before / 16) / MIB * MIB));
	code("all-at-once-free", release(piece[0]));
}

/* Of the time when addresses had 32 bits; a program that has them finds a device address in 32 bits, or not.
 */
void group_old(void)
{
	unsigned memory = 0, base = 0, pitch = 0, size = 0;

	open_primary();
	code("alloc", CALL(cuMemAlloc, (unsigned *, unsigned), &memory, 4096));
	yes("alloc-answer", memory != 0);
	code("range", CALL(cuMemGetAddressRange, (unsigned *, unsigned *, unsigned), &base, &size, memory));
	value("range-size", "%u", size);
	code("free", CALL(cuMemFree, (unsigned), memory));
	code("free-null", CALL(cuMemFree, (unsigned), 0));
	code("alloc-zero", CALL(cuMemAlloc, (unsigned *, unsigned), &memory, 0));
	code("alloc-null", CALL(cuMemAlloc, (unsigned *, unsigned), NULL, 4096));
	code("pitch", CALL(cuMemAllocPitch, (unsigned *, unsigned *, unsigned, unsigned, unsigned), &memory,
			   &pitch, 1000, 16, 4));
	value("pitch-is", "%u", pitch);
	code("pitch-free", CALL(cuMemFree, (unsigned), memory));
	code("synchronize", CALL(cuCtxSynchronize, (void)));
}
