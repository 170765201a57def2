// SPDX-License-Identifier: Apache-2.0
/* The device has so much memory and no more, however it is asked for, and no descriptor of the
 * program is missing for it. */
#include "testing.h"

#include <sys/resource.h>

#define MIB ((size_t)1 << 20)

static CUresult (*info)(size_t *, size_t *);
static CUresult (*create)(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,
			  unsigned long long);
static CUresult (*release)(CUmemGenericAllocationHandle);

static size_t unused(void)
{
	size_t left, total;

	CHECK(info(&left, &total));
	EXPECT_EQ(total, 64 * MIB);
	return left;
}

static void heap(void)
{
	CUdeviceptr p, q, small[5000];
	size_t before = unused();

	CHECK(cuda.MemAlloc(&p, 40 * MIB));
	EXPECT_EQ(cuda.MemAlloc(&q, 40 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(cuda.MemAlloc(&q, 16 * MIB));
	CHECK(cuda.MemFree(p));
	CHECK(cuda.MemFree(q));
	EXPECT_EQ(unused(), before);
	for (int i = 0; i < 5000; i++)
		CHECK(cuda.MemAlloc(&small[i], 700));
	EXPECT(before - unused() < 8 * MIB);
	for (int i = 0; i < 5000; i++)
		CHECK(cuda.MemFree(small[(i * 7) % 5000]));
	EXPECT_EQ(unused(), before);
}

static void handles(void)
{
	CUmemAllocationProp properties = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
					   .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
	CUmemGenericAllocationHandle handle[33];
	struct rlimit few = { 24, 4096 };
	size_t before = unused();
	int made = 0;

	EXPECT(setrlimit(RLIMIT_NOFILE, &few) == 0);
	while (made < 33 && create(&handle[made], 2 * MIB, &properties, 0) == CUDA_SUCCESS)
		made++;
	EXPECT_EQ((size_t)made, before / (2 * MIB));
	EXPECT_EQ(unused(), before % (2 * MIB));
	EXPECT(getrlimit(RLIMIT_NOFILE, &few) == 0);
	EXPECT_EQ(few.rlim_cur, 24);
	while (made)
		CHECK(release(handle[--made]));
	EXPECT_EQ(unused(), before);
}

int main(void)
{
	setenv("DIAPAUSE_SOFTGPU_MEMORY", "64M", 1);
	driver_open();
	gpu_open();
	*(void **)&info = driver_symbol("cuMemGetInfo_v2");
	*(void **)&create = driver_symbol("cuMemCreate");
	*(void **)&release = driver_symbol("cuMemRelease");
	heap();
	handles();
	return 0;
}
