// SPDX-License-Identifier: Apache-2.0
/* A program that manages device memory itself, as PyTorch's expandable segments do: chunks that are created
 * without a handle type, mapped side by side in one range, replaced one after the other, taken out and mapped
 * again; handles that are released while their memory is mapped and asked for again; a chunk seen twice. */
#include "gpu.h"
#include "more.h"
#include "report.h"

#define CHUNKS 6u

MORE(MemGetAllocationGranularity, 10020, size_t *, const CUmemAllocationProp *, int)
MORE(MemAddressReserve, 10020, CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long)
MORE(MemCreate, 10020, CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,
     unsigned long long)
MORE(MemRelease, 10020, CUmemGenericAllocationHandle)
MORE(MemMap, 10020, CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long)
MORE(MemUnmap, 10020, CUdeviceptr, size_t)
MORE(MemSetAccess, 10020, CUdeviceptr, size_t, const CUmemAccessDesc *, size_t)
MORE(MemRetainAllocationHandle, 11000, CUmemGenericAllocationHandle *, void *)

static const CUmemAllocationProp properties = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
};
static const CUmemAccessDesc both = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
				      CU_MEM_ACCESS_FLAGS_PROT_READWRITE };

struct chunk {
	CUmemGenericAllocationHandle handle; /* 0: released while mapped */
	struct array array;
};

static struct chunk chunks[CHUNKS];
static CUdeviceptr range;
static size_t size; /* of a chunk */
static uint64_t seeds;

static void load(void)
{
	MORE_LOAD(MemGetAllocationGranularity);
	MORE_LOAD(MemAddressReserve);
	MORE_LOAD(MemCreate);
	MORE_LOAD(MemRelease);
	MORE_LOAD(MemMap);
	MORE_LOAD(MemUnmap);
	MORE_LOAD(MemSetAccess);
	MORE_LOAD(MemRetainAllocationHandle);
}

static void map(CUdeviceptr at, CUmemGenericAllocationHandle handle)
{
	CHECK(more_MemMap(at, size, 0, handle, 0));
	CHECK(more_MemSetAccess(at, size, &both, 1));
}

static void fill(struct chunk *chunk)
{
	CHECK(more_MemCreate(&chunk->handle, size, &properties, 0));
	map(chunk->array.words, chunk->handle);
	chunk->array.model = model_fill(size / sizeof(uint64_t), ++seeds);
	array_fill(&chunk->array);
}

static CUmemGenericAllocationHandle handle_of(struct chunk *chunk)
{
	if (!chunk->handle)
		CHECK(more_MemRetainAllocationHandle(&chunk->handle, (void *)(uintptr_t)chunk->array.words));
	return chunk->handle;
}

static void release(struct chunk *chunk)
{
	CHECK(more_MemRelease(handle_of(chunk)));
	chunk->handle = 0;
}

/* Its content is kept by the handle. */
static void move_out_and_in(struct chunk *chunk)
{
	CUmemGenericAllocationHandle handle = handle_of(chunk);

	CHECK(more_MemUnmap(chunk->array.words, size));
	map(chunk->array.words, handle);
}

static void replace(struct chunk *chunk)
{
	CHECK(more_MemUnmap(chunk->array.words, size));
	if (chunk->handle)
		release(chunk);
	fill(chunk);
}

/* The last part of the range is a second view of a chunk. */
static void look_twice(struct chunk *chunk)
{
	struct array view = chunk->array;

	view.words = range + CHUNKS * size;
	map(view.words, handle_of(chunk));
	array_sum(&view);
	array_verify(&view);
	CHECK(more_MemUnmap(view.words, size));
}

static void change(struct chunk *chunk, uint64_t step)
{
	switch (step % 4) {
	case 0:
		move_out_and_in(chunk);
		break;
	case 1:
		release(chunk);
		break;
	case 2:
		look_twice(chunk);
		break;
	case 3:
		replace(chunk);
		break;
	}
}

static uint64_t step_all(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < CHUNKS; i++) {
		array_step(&chunks[i].array);
		array_sum(&chunks[i].array);
	}
	for (unsigned i = 0; i < CHUNKS; i++)
		sum ^= array_verify(&chunks[i].array);
	return sum;
}

int main(int argc, char **argv)
{
	struct options options = { .interval = 20, .mib = 2 };
	uint64_t step = 0, sum;

	options_parse(&options, argc, argv);
	gpu_open();
	load();
	CHECK(more_MemGetAllocationGranularity(&size, &properties, 0));
	size = ((options.mib << 20) + size - 1) / size * size;
	CHECK(more_MemAddressReserve(&range, (CHUNKS + 1) * size, 0, 0, 0));
	for (unsigned i = 0; i < CHUNKS; i++) {
		array_make(&chunks[i].array, 1, 1, NULL); /* its sum and stream; the words are ours */
		CHECK(cuda.MemFree(chunks[i].array.words));
		chunks[i].array.words = range + i * size;
		fill(&chunks[i]);
	}
	report_ready(&options);
	do {
		sum = step_all();
		change(&chunks[step / 3 % CHUNKS], step);
	} while (report_step(&options, ++step, sum));
	return 0;
}
