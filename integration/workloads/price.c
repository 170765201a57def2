// SPDX-License-Identifier: Apache-2.0
/* What calls cost: lines `NAME NUMBER UNIT`. The lowest of many rounds, since such machines change their
 * mood. */
#include "gpu.h"
#include "report.h"

#include <stdio.h>
#include <time.h>

#define ROUNDS 30
#define PINNED ((size_t)256 << 20)

static CUdeviceptr memory;
static CUstream stream;
static void *pinned;

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void alloc_4_kib(void)
{
	CHECK(cuda.MemAlloc(&memory, 4096));
	CHECK(cuda.MemFree(memory));
}

static void alloc_2_mib(void)
{
	CHECK(cuda.MemAlloc(&memory, 2 << 20));
	CHECK(cuda.MemFree(memory));
}

static void query(void)
{
	CHECK(cuda.StreamQuery(stream));
}

static void launch(void)
{
	gpu_spin(memory, 0, stream);
}

static void set(void)
{
	CHECK(cuda.MemsetD8Async(memory, 0, 8, stream));
}

static void down(void)
{
	CHECK(cuda.MemcpyDtoHAsync(pinned, memory, PINNED, stream));
	CHECK(cuda.StreamSynchronize(stream));
}

static void up(void)
{
	CHECK(cuda.MemcpyHtoDAsync(memory, pinned, PINNED, stream));
	CHECK(cuda.StreamSynchronize(stream));
}

/* Nanoseconds a call, of the quickest round. */
static double lowest(void (*call)(void), unsigned calls)
{
	double best = 1e18, start, took;

	for (unsigned round = 0; round < ROUNDS; round++) {
		start = now_ns();
		for (unsigned i = 0; i < calls; i++)
			call();
		took = (now_ns() - start) / calls;
		CHECK(cuda.CtxSynchronize());
		best = took < best ? took : best;
	}
	return best;
}

static void measure(const char *name, void (*call)(void), unsigned calls)
{
	printf("%s %.1f ns\n", name, lowest(call, calls));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct options options = { 0 };

	options_parse(&options, argc, argv);
	gpu_open();
	CHECK(cuda.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	measure("alloc_4_kib", alloc_4_kib, 200);
	measure("alloc_2_mib", alloc_2_mib, 50);
	CHECK(cuda.MemAlloc(&memory, PINNED));
	CHECK(cuda.MemsetD8Async(memory, 0, PINNED, stream));
	CHECK(cuda.StreamSynchronize(stream));
	measure("query", query, 10000);
	measure("launch", launch, 500);
	measure("memset", set, 500);
	CHECK(cuda.MemHostAlloc(&pinned, PINNED, 0));
	printf("down %.2f GB/s\n", (double)PINNED / lowest(down, 1));
	printf("up %.2f GB/s\n", (double)PINNED / lowest(up, 1));
	return 0;
}
