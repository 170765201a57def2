// SPDX-License-Identifier: Apache-2.0
/* What most groups begin with: the device's primary context and the kernels. */
#include "contract.h"

#include "../../demo/kernels.h"

CUcontext contract_context;

void contract_open(void)
{
	CUdevice device;

	NEED(cu.Init(0));
	NEED(cu.DeviceGet(&device, 0));
	NEED(cu.DevicePrimaryCtxRetain(&contract_context, device));
	NEED(cu.CtxSetCurrent(contract_context));
}

void contract_kernels(struct kernels *k)
{
	NEED(cu.ModuleLoadData(&k->module, kernels_ptx));
	NEED(cu.ModuleGetFunction(&k->fill, k->module, "fill"));
	NEED(cu.ModuleGetFunction(&k->step, k->module, "step"));
	NEED(cu.ModuleGetFunction(&k->checksum, k->module, "checksum"));
	NEED(cu.ModuleGetFunction(&k->spin, k->module, "spin"));
}

void launch_fill(const struct kernels *k, CUdeviceptr words, uint64_t count, uint64_t seed, CUstream stream)
{
	void *arguments[] = { &words, &count, &seed };

	NEED(cu.LaunchKernel(k->fill, 64, 1, 1, 256, 1, 1, 0, stream, arguments, NULL));
}

void launch_step(const struct kernels *k, CUdeviceptr words, uint64_t count, CUstream stream)
{
	void *arguments[] = { &words, &count };

	NEED(cu.LaunchKernel(k->step, 64, 1, 1, 256, 1, 1, 0, stream, arguments, NULL));
}

uint64_t checksum(const struct kernels *k, CUdeviceptr words, uint64_t count)
{
	CUdeviceptr sum;
	void *arguments[] = { &words, &count, &sum };
	uint64_t answer;

	NEED(cu.MemAlloc(&sum, sizeof(answer)));
	NEED(cu.MemsetD8(sum, 0, sizeof(answer)));
	NEED(cu.LaunchKernel(k->checksum, 64, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL));
	NEED(cu.MemcpyDtoH(&answer, sum, sizeof(answer)));
	NEED(cu.MemFree(sum));
	return answer;
}

void launch_spin(const struct kernels *k, uint64_t ms, CUdeviceptr done, CUstream stream)
{
	uint64_t ns = ms * 1000000;
	void *arguments[] = { &ns, &done };

	NEED(cu.LaunchKernel(k->spin, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
}
