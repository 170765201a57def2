// SPDX-License-Identifier: Apache-2.0
/* cuPointerGetAttribute(s): every attribute of every kind of memory. */
#include "replaced.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAST 24 /* attributes of CUDA 13 */

enum {
	CONTEXT = 1,
	DEVICE_POINTER = 3,
	HOST_POINTER = 4,
	P2P_TOKENS = 5,
	BUFFER_ID = 7,
	RANGE_START = 11,
	MEMPOOL_HANDLE = 17,
	MAPPING_BASE = 19,
	BLOCK_ID = 20,
};

static CUcontext ours;

static CUresult attribute(void *into, int which, CUdeviceptr memory)
{
	return CALL(cuPointerGetAttribute, (void *, int, CUdeviceptr), into, which, memory);
}

/* What was written, without what differs from process to process. */
static void show(const char *kind, int which, const unsigned char *data, CUdeviceptr memory)
{
	char check[64], text[80] = "";
	uint64_t word;

	memcpy(&word, data, sizeof(word));
	snprintf(check, sizeof(check), "%s-%d-is", kind, which);
	if (which == CONTEXT)
		value(check, "%s", (CUcontext)word == ours ? "ours" : word ? "another" : "none");
	else if (which == DEVICE_POINTER || which == HOST_POINTER || which == RANGE_START ||
		 which == MAPPING_BASE)
		value(check, "%s", word ? (word == memory ? "itself" : "below it") : "null");
	else if (which == BUFFER_ID || which == MEMPOOL_HANDLE || which == P2P_TOKENS || which == BLOCK_ID)
		value(check, "%s", word ? "set" : "null");
	else {
		for (int i = 0; i < 16; i++)
			sprintf(text + 2 * i, "%02x", data[i]);
		value(check, "%s", text);
	}
}

static void all_of(const char *kind, CUdeviceptr memory)
{
	unsigned char data[64];
	CUresult result;

	for (int which = 0; which <= LAST; which++) {
		memset(data, 0x5a, sizeof(data));
		result = attribute(data, which, memory);
		codes(result, "%s-%d", kind, which);
		if (!result)
			show(kind, which, data, memory);
	}
}

static void several(const char *kind, CUdeviceptr memory)
{
	int which[] = { 2, 3, 9, 11, 12 }, wrong[] = { 2, 4711 }, ordinal = 77;
	CUdeviceptr pointer = 77, start = 77;
	size_t size = 77;
	unsigned type = 77;
	void *into[] = { &type, &pointer, &ordinal, &start, &size };

	codes(CALL(cuPointerGetAttributes, (unsigned, int *, void **, CUdeviceptr), 5, which, into, memory),
	      "%s-several", kind);
	value("several", "type %u pointer %s ordinal %d start %s size %zu", type,
	      pointer == memory ? "same"
	      : pointer		? "another"
				: "null",
	      ordinal,
	      start == memory ? "same"
	      : start	      ? "another"
			      : "null",
	      size);
	codes(CALL(cuPointerGetAttributes, (unsigned, int *, void **, CUdeviceptr), 0, which, into, memory),
	      "%s-none", kind);
	codes(CALL(cuPointerGetAttributes, (unsigned, int *, void **, CUdeviceptr), 2, wrong, into, memory),
	      "%s-wrong", kind);
}

static void identity(void)
{
	unsigned long long a = 0, b = 0, again = 0;
	CUdeviceptr one = allocate(100), two = allocate(100);

	NEED(attribute(&a, BUFFER_ID, one));
	NEED(attribute(&again, BUFFER_ID, one + 50));
	NEED(attribute(&b, BUFFER_ID, two));
	yes("buffer-ids-differ", a != b);
	yes("buffer-id-stays", a == again);
	yes("buffer-id-order", b > a);
	NEED(release(one));
	one = allocate(100);
	NEED(attribute(&again, BUFFER_ID, one));
	yes("buffer-id-of-another-life", a != again);
}

static CUdeviceptr mapped(void)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr range = reserve(4 * MIB);

	NEED(create(&handle, 2 * MIB, &properties));
	NEED(map(range, 2 * MIB, 0, handle));
	NEED(access_both(range, 2 * MIB));
	return range;
}

void group_attribute(void)
{
	CUdeviceptr large, small, range, pool = 0;
	void *pinned = NULL, *heap = malloc(4096);
	unsigned flag = 1;

	ours = open_primary();
	large = allocate(5 * MIB + 12);
	small = allocate(1000);
	range = mapped();
	NEED(CALL(cuMemHostAlloc, (void **, size_t, unsigned), &pinned, 8192, 0));
	NEED(CALL(cuMemAllocAsync, (CUdeviceptr *, size_t, CUstream), &pool, 8192, NULL));
	synchronize();
	all_of("large", large);
	all_of("large-middle", large + 4 * MIB + 1);
	all_of("small", small);
	all_of("small-middle", small + 999);
	all_of("mapped", range + 4096);
	all_of("reserved", range + 3 * MIB);
	all_of("pinned", (CUdeviceptr)(uintptr_t)pinned);
	all_of("pool", pool);
	all_of("heap", (CUdeviceptr)(uintptr_t)heap);
	all_of("null", 0);
	several("large", large);
	several("small", small);
	several("mapped", range);
	several("heap", (CUdeviceptr)(uintptr_t)heap);
	several("null", 0);
	code("into-null", attribute(NULL, 2, small));
	code("beyond", attribute(&flag, 4711, small));
	code("negative", attribute(&flag, -1, small));
	code("synchronous", CALL(cuPointerSetAttribute, (const void *, int, CUdeviceptr), &flag, 6, small));
	code("synchronous-again", attribute(&flag, 6, small));
	value("synchronous-is", "%u", flag & 0xff);
	identity();
	code("small-free", release(small));
	code("of-freed", attribute(&flag, 2, small));
	code("large-free", release(large));
	code("of-freed-large", attribute(&flag, 2, large));
}
