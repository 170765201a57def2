// SPDX-License-Identifier: Apache-2.0
#include "gpu.h"

#include "report.h"

#include <stdlib.h>

struct gpu gpu;

void gpu_open(void)
{
	CUmodule module;
	CUdevice device;

	cuda_load();
	CHECK(cuda.Init(0));
	CHECK(cuda.DeviceGet(&device, 0));
	CHECK(cuda.DevicePrimaryCtxRetain(&gpu.ctx, device));
	CHECK(cuda.CtxSetCurrent(gpu.ctx));
	CHECK(cuda.ModuleLoadData(&module, kernels_ptx));
	CHECK(cuda.ModuleGetFunction(&gpu.fill, module, "fill"));
	CHECK(cuda.ModuleGetFunction(&gpu.step, module, "step"));
	CHECK(cuda.ModuleGetFunction(&gpu.checksum, module, "checksum"));
	CHECK(cuda.ModuleGetFunction(&gpu.spin, module, "spin"));
}

static void launch(CUfunction function, uint64_t words, CUstream stream, void **arguments)
{
	uint64_t blocks = (words + 255) / 256;

	if (blocks > 1024)
		blocks = 1024;
	CHECK(cuda.LaunchKernel(function, (unsigned)blocks, 1, 1, 256, 1, 1, 0, stream, arguments, NULL));
}

void array_make(struct array *array, uint64_t words, uint64_t seed, CUstream stream)
{
	array->stream = stream;
	array->model = model_fill(words, seed);
	array->host_sum = calloc(1, sizeof(*array->host_sum));
	if (!array->host_sum)
		cuda_failed(CUDA_ERROR_OUT_OF_MEMORY, "calloc");
	CHECK(cuda.MemAlloc(&array->words, words * sizeof(uint64_t)));
	CHECK(cuda.MemAlloc(&array->sum, sizeof(uint64_t)));
	array_fill(array);
}

void array_free(struct array *array)
{
	CHECK(cuda.MemFree(array->words));
	CHECK(cuda.MemFree(array->sum));
	free(array->host_sum);
}

void array_fill(struct array *array)
{
	void *arguments[] = { &array->words, &array->model.words, &array->model.seed };

	launch(gpu.fill, array->model.words, array->stream, arguments);
}

void array_step(struct array *array)
{
	void *arguments[] = { &array->words, &array->model.words };

	launch(gpu.step, array->model.words, array->stream, arguments);
	model_step(&array->model);
}

void array_sum(struct array *array)
{
	void *arguments[] = { &array->words, &array->model.words, &array->sum };

	CHECK(cuda.MemsetD8Async(array->sum, 0, sizeof(uint64_t), array->stream));
	launch(gpu.checksum, array->model.words, array->stream, arguments);
	CHECK(cuda.MemcpyDtoHAsync(array->host_sum, array->sum, sizeof(uint64_t), array->stream));
}

uint64_t array_verify(struct array *array)
{
	CHECK(cuda.StreamSynchronize(array->stream));
	if (*array->host_sum != array->model.sum)
		report_bad(array->model.steps, *array->host_sum, array->model.sum);
	return array->model.sum;
}

void gpu_spin(CUdeviceptr count, uint64_t ns, CUstream stream)
{
	void *arguments[] = { &ns, &count };

	CHECK(cuda.LaunchKernel(gpu.spin, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
}
