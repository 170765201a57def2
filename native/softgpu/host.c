// SPDX-License-Identifier: Apache-2.0
/* Host memory that the device can reach: allocated by the driver or registered. It stays in the
 * process at a checkpoint and lands in CRIU's image, as on hardware. */
#include "softgpu.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define PAGE 4096

static struct span *make(enum span_kind kind, void *at, size_t size, unsigned flags, struct context *ctx)
{
	struct span *span = calloc(1, sizeof(*span));

	if (!span)
		return NULL;
	span->kind = kind;
	span->address = (uint64_t)at;
	span->size = kind == SPAN_HOST ? ALIGN_UP(size, PAGE) : size;
	span->asked = size;
	span->flags = flags;
	span->ctx = ctx;
	return span;
}

static int add(struct span *span)
{
	int error;

	pthread_mutex_lock(&memory_lock);
	error = span_add(span);
	pthread_mutex_unlock(&memory_lock);
	if (error)
		free(span);
	return error;
}

CUDA_API(cuMemHostAlloc, void **out, size_t size, unsigned int flags)
{
	ENTER_CONTEXT(ctx);
	struct span *span;
	void *at;

	if (!out || (flags & ~7u))
		return CUDA_ERROR_INVALID_VALUE;
	*out = NULL;
	if (!size)
		return CUDA_SUCCESS;
	at = mmap(NULL, ALIGN_UP(size, PAGE), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	span = make(SPAN_HOST, at, size, flags, ctx);
	if (!span || add(span)) {
		munmap(at, ALIGN_UP(size, PAGE));
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = at;
	return CUDA_SUCCESS;
}

CUDA_API(cuMemAllocHost_v2, void **out, size_t size)
{
	return cuMemHostAlloc(out, size, 0);
}

static void release(struct span *span)
{
	span_remove(span);
	if (span->kind == SPAN_HOST)
		munmap((void *)span->address, span->size);
	free(span);
}

/* `unknown` is for an address that is in no such memory at all. */
static CUresult release_at(void *p, enum span_kind kind, CUresult unknown)
{
	CUresult result = unknown;
	struct span *span;

	pthread_mutex_lock(&memory_lock);
	span = span_find((uint64_t)p);
	if (span && span->kind == kind) {
		result = CUDA_ERROR_INVALID_VALUE;
		if (span->address == (uint64_t)p) {
			release(span);
			result = CUDA_SUCCESS;
		}
	}
	pthread_mutex_unlock(&memory_lock);
	return result;
}

CUDA_API(cuMemFreeHost, void *p)
{
	ENTER_CONTEXT(ctx);
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	context_synchronize(ctx);
	return release_at(p, SPAN_HOST, CUDA_ERROR_INVALID_VALUE);
}

CUDA_API(cuMemHostRegister_v2, void *p, size_t size, unsigned int flags)
{
	ENTER_CONTEXT(ctx);
	struct span *span;
	int error;

	if (!p || !size || (flags & ~15u))
		return CUDA_ERROR_INVALID_VALUE;
	span = make(SPAN_REGISTERED, p, size, flags, ctx);
	if (!span)
		return CUDA_ERROR_OUT_OF_MEMORY;
	error = add(span);
	if (error == -EEXIST)
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	return error ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUDA_API(cuMemHostUnregister, void *p)
{
	ENTER_CONTEXT(ctx);
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	context_synchronize(ctx);
	return release_at(p, SPAN_REGISTERED, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

static bool is_host(uint64_t address, unsigned *flags)
{
	struct span *span;
	bool found;

	pthread_mutex_lock(&memory_lock);
	span = span_find(address);
	found = span && (span->kind == SPAN_HOST || span->kind == SPAN_REGISTERED);
	if (found)
		*flags = span->flags;
	pthread_mutex_unlock(&memory_lock);
	return found;
}

CUDA_API(cuMemHostGetDevicePointer_v2, CUdeviceptr *address, void *p, unsigned int flags)
{
	ENTER_CONTEXT(ctx);
	unsigned unused;

	if (!address || !p || flags || !is_host((uint64_t)p, &unused))
		return CUDA_ERROR_INVALID_VALUE;
	*address = (CUdeviceptr)p;
	return CUDA_SUCCESS;
}

CUDA_API(cuMemHostGetFlags, unsigned int *flags, void *p)
{
	ENTER_CONTEXT(ctx);
	if (!flags || !p || !is_host((uint64_t)p, flags))
		return CUDA_ERROR_INVALID_VALUE;
	*flags |= CU_MEMHOSTALLOC_DEVICEMAP;
	return CUDA_SUCCESS;
}

static struct span *first_of(struct context *ctx)
{
	for (size_t i = 0; i < span_count; i++) {
		if (spans[i]->kind >= SPAN_HOST && spans[i]->ctx == ctx)
			return spans[i];
	}
	return NULL;
}

/* A context goes, with its host and managed memory. */
void host_forget(struct context *ctx)
{
	struct span *span;

	pthread_mutex_lock(&memory_lock);
	while ((span = first_of(ctx))) {
		if (span->kind == SPAN_MANAGED)
			managed_free(span, span->address);
		else
			release(span);
	}
	pthread_mutex_unlock(&memory_lock);
}
