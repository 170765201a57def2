// SPDX-License-Identifier: Apache-2.0
/* What the kernels compute, how they are launched, and what a wrong one does to its context. */
#include "contract.h"

#include "../../demo/model.h"

#include <stdlib.h>

#define WORDS ((uint64_t)100003)

static struct kernels k;

static uint64_t *copy_of(CUdeviceptr words)
{
	uint64_t *copy = malloc(WORDS * sizeof(*copy));

	if (!copy)
		need("malloc", CUDA_ERROR_OUT_OF_MEMORY);
	NEED(cu.MemcpyDtoH(copy, words, WORDS * sizeof(*copy)));
	return copy;
}

static void values(CUdeviceptr words)
{
	struct model model = model_fill(WORDS, 7);
	uint64_t *copy, expected = (WORDS - 1 + 7) * KERNEL_MULTIPLIER + KERNEL_INCREMENT;

	launch_fill(&k, words, WORDS, 7, NULL);
	NEED(cu.CtxSynchronize());
	copy = copy_of(words);
	yes("fill-last-word", copy[WORDS - 1] == expected);
	yes("fill-sum", checksum_words(copy, WORDS) == model.sum);
	free(copy);
	yes("checksum", checksum(&k, words, WORDS) == model.sum);
	for (int i = 0; i < 3; i++) {
		launch_step(&k, words, WORDS, NULL);
		model_step(&model);
	}
	yes("step", checksum(&k, words, WORDS) == model.sum);
}

/* One that does not fit the number of words, on every axis that a kernel does not look at too. */
static void shapes(CUdeviceptr words)
{
	static const unsigned shape[][6] = {
		{ 1, 1, 1, 1, 1, 1 },
		{ 3, 1, 1, 17, 1, 1 },
		{ 1, 1, 1, 1024, 1, 1 },
		{ 2000, 1, 1, 96, 1, 1 },
	};
	uint64_t count = WORDS, seed;
	void *arguments[] = { &words, &count, &seed };
	unsigned good = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(shape); i++) {
		const unsigned *s = shape[i];

		seed = 100 + i;
		NEED(cu.LaunchKernel(k.fill, s[0], s[1], s[2], s[3], s[4], s[5], 0, NULL, arguments, NULL));
		good += checksum(&k, words, WORDS) == model_fill(WORDS, seed).sum;
	}
	value("shapes", "%u of %zu", good, ARRAY_SIZE(shape));
}

static void buffer(CUdeviceptr words)
{
	struct {
		CUdeviceptr words;
		uint64_t count, seed;
	} packed = { words, WORDS, 55 };
	size_t size = sizeof(packed);
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
			  CU_LAUNCH_PARAM_END };
	void *arguments[] = { &packed.words, &packed.count, &packed.seed };
	CUlaunchConfig config = {
		.gridDimX = 8, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 64, .blockDimY = 1, .blockDimZ = 1
	};

	code("launch-buffer", cu.LaunchKernel(k.fill, 8, 1, 1, 64, 1, 1, 0, NULL, NULL, extra));
	yes("launch-buffer-sum", checksum(&k, words, WORDS) == model_fill(WORDS, 55).sum);
	packed.seed = 56;
	code("launch-ex", cu.LaunchKernelEx(&config, k.fill, arguments, NULL));
	yes("launch-ex-sum", checksum(&k, words, WORDS) == model_fill(WORDS, 56).sum);
}

static void refusals(CUdeviceptr words)
{
	uint64_t count = 0, seed = 0;
	void *arguments[] = { &words, &count, &seed };

	code("launch-nothing", cu.LaunchKernel(k.fill, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
	code("launch-no-grid", cu.LaunchKernel(k.fill, 0, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
	code("launch-no-block", cu.LaunchKernel(k.fill, 1, 1, 1, 0, 1, 1, 0, NULL, arguments, NULL));
	code("launch-large-block", cu.LaunchKernel(k.fill, 1, 1, 1, 2048, 1, 1, 0, NULL, arguments, NULL));
	code("launch-shared", cu.LaunchKernel(k.fill, 1, 1, 1, 1, 1, 1, 1 << 24, NULL, arguments, NULL));
	code("launch-no-arguments", cu.LaunchKernel(k.fill, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	code("launch-null", cu.LaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
	code("synchronize", cu.CtxSynchronize());
}

void group_kernel(void)
{
	CUdeviceptr words;

	contract_open();
	contract_kernels(&k);
	NEED(cu.MemAlloc(&words, WORDS * sizeof(uint64_t)));
	values(words);
	shapes(words);
	buffer(words);
	refusals(words);
}

/* A kernel that follows a wrong pointer ends its context: the error sticks. */
void group_fault(void)
{
	size_t free_bytes, total;
	CUdeviceptr memory;

	contract_open();
	contract_kernels(&k);
	NEED(cu.MemAlloc(&memory, MIB));
	launch_fill(&k, 0x1234000, 16, 1, NULL);
	code("synchronize", cu.CtxSynchronize());
	code("synchronize-again", cu.CtxSynchronize());
	code("query", cu.StreamQuery(NULL));
	code("alloc", cu.MemAlloc(&memory, MIB));
	code("memset", cu.MemsetD8(memory, 0, 16));
	code("info", cu.MemGetInfo(&free_bytes, &total));
	code("free", cu.MemFree(memory));
}
