// SPDX-License-Identifier: Apache-2.0
/* Many small and some large allocations of random sizes, every one of them checked each step; some
 * go each step and others come. */
#include "gpu.h"
#include "report.h"

#include <stdlib.h>

#define LARGE 6
#define EXCHANGED 5 /* a step */

static uint64_t random_state = 20260101;
static uint64_t seeds;

static uint64_t random_below(uint64_t limit)
{
	random_state = random_state * KERNEL_MULTIPLIER + KERNEL_INCREMENT;
	return (random_state >> 33) % limit;
}

/* A third of them goes again, so that the allocator has holes. */
static void make_holes(void)
{
	CUdeviceptr hole[64];

	for (size_t i = 0; i < 64; i++)
		CHECK(cuda.MemAlloc(&hole[i], 1 + random_below(100000)));
	for (size_t i = 0; i < 64; i += 3)
		CHECK(cuda.MemFree(hole[i]));
}

static void make(struct array *array, bool large)
{
	array_make(array, large ? 300000 + random_below(1 << 20) : 1 + random_below(4096), ++seeds, NULL);
}

static void exchange(struct array *arrays, unsigned small)
{
	unsigned which;

	for (unsigned i = 0; i < EXCHANGED; i++) {
		which = (unsigned)random_below(small + LARGE);
		array_free(&arrays[which]);
		make(&arrays[which], which >= small);
	}
}

int main(int argc, char **argv)
{
	struct options options = { .interval = 200, .count = 500 };
	struct array *arrays;
	uint64_t step = 0, sum;
	unsigned all;

	options_parse(&options, argc, argv);
	all = options.count + LARGE;
	arrays = calloc(all, sizeof(*arrays));
	if (!arrays)
		return 8;
	gpu_open();
	make_holes();
	for (unsigned i = 0; i < all; i++)
		make(&arrays[i], i >= options.count);
	report_ready(&options);
	do {
		for (unsigned i = 0; i < all; i++) {
			array_step(&arrays[i]);
			array_sum(&arrays[i]);
		}
		sum = 0;
		for (unsigned i = 0; i < all; i++)
			sum ^= array_verify(&arrays[i]);
		exchange(arrays, options.count);
	} while (report_step(&options, ++step, sum));
	return 0;
}
