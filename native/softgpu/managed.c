// SPDX-License-Identifier: Apache-2.0
/* Managed memory: the CPU and the device use it at one address. A process that has any cannot be
 * checkpointed (driver 580 answers 801). */
#include "softgpu.h"

#include <stdlib.h>
#include <sys/mman.h>

CUDA_API(cuMemAllocManaged, CUdeviceptr *address, size_t size, unsigned int flags)
{
	ENTER_CONTEXT(ctx);
	size_t length = ALIGN_UP(size, GRANULARITY);
	struct span *span;
	void *at;

	if (!address || !size || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	if (size > device.memory)
		return CUDA_ERROR_OUT_OF_MEMORY;
	span = calloc(1, sizeof(*span));
	at = span_reserve(length, GRANULARITY, 0);
	if (!span || !at || shadow_map(at, length, PROT_READ | PROT_WRITE, -1) < 0) {
		if (at)
			munmap(at, length);
		free(span);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	span->kind = SPAN_MANAGED;
	span->address = (uint64_t)at;
	span->size = length;
	span->asked = size;
	span->ctx = ctx;
	pthread_mutex_lock(&memory_lock);
	span_add(span);
	pthread_mutex_unlock(&memory_lock);
	*address = span->address;
	return CUDA_SUCCESS;
}

/* Called with memory_lock held. */
CUresult managed_free(struct span *span, uint64_t address)
{
	if (span->address != address)
		return CUDA_ERROR_INVALID_VALUE;
	span_remove(span);
	munmap((void *)span->address, span->size);
	free(span);
	return CUDA_SUCCESS;
}

/* Service thread: no lock, the table is at rest. */
bool managed_any(void)
{
	for (size_t i = 0; i < span_count; i++) {
		if (spans[i]->kind == SPAN_MANAGED)
			return true;
	}
	return false;
}

/* Advice and prefetch change nothing here. */
CUDA_API(cuStreamAttachMemAsync, CUstream stream, CUdeviceptr address, size_t size, unsigned int flags)
{
	ENTER_CONTEXT(ctx);
	return memory_known(address, size ? size : 1) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUDA_API(cuStreamAttachMemAsync_ptsz, CUstream stream, CUdeviceptr address, size_t size, unsigned int flags)
{
	return cuStreamAttachMemAsync(per_thread(stream), address, size, flags);
}
