// SPDX-License-Identifier: Apache-2.0
/* What the driver knows about an address. */
#include "softgpu.h"

/* A copy of the facts, so that nothing is looked at without the lock. */
struct facts {
	enum span_kind kind;
	uint64_t base, id;
	size_t size;
	uint64_t mapping; /* what it is part of: start and size */
	size_t mapping_size;
	struct context *ctx;
	unsigned handle_types;
	int access;
	struct pool *pool;
};

/* Called with memory_lock held. */
static bool look(uint64_t address, struct facts *f)
{
	struct span *span = span_find(address);
	struct block *block;

	if (!span)
		return false;
	*f = (struct facts){ .kind = span->kind,
			     .base = span->address,
			     .id = span->id,
			     .size = span->asked,
			     .mapping = span->address,
			     .mapping_size = span->size,
			     .ctx = span->ctx,
			     .access = 3 };
	if (span->kind == SPAN_HEAP) {
		block = heap_block(address);
		if (!block)
			return false;
		f->base = block->address;
		f->size = block->asked;
		f->ctx = block->ctx;
		f->id = block->id;
		f->pool = block->pool;
		if (block->pool) {
			f->mapping = block->address;
			f->mapping_size = block->size;
		}
		return true;
	}
	if (span->kind != SPAN_RESERVED)
		return true;
	for (struct mapping *m = span->mappings; m; m = m->next) {
		if (address >= m->address && address < m->address + m->size) {
			f->base = f->mapping = m->address;
			f->size = f->mapping_size = m->size;
			f->access = m->access;
			f->handle_types = (unsigned)m->physical->properties.requestedHandleTypes;
			return true;
		}
	}
	return false;
}

static bool is_host(const struct facts *f)
{
	return f->kind == SPAN_HOST || f->kind == SPAN_REGISTERED;
}

static CUresult answer(void *data, CUpointer_attribute attribute, uint64_t address, const struct facts *f)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)data = (CUcontext)f->ctx;
		return f->ctx ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned *)data = is_host(f) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(CUdeviceptr *)data = address;
		break;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (f->kind == SPAN_HEAP || f->kind == SPAN_RESERVED) {
			*(void **)data = NULL;
			return CUDA_ERROR_INVALID_VALUE;
		}
		*(void **)data = (void *)address;
		break;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		*(unsigned *)data = 0;
		break;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		*(unsigned long long *)data = f->id;
		break;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(unsigned *)data = f->kind == SPAN_MANAGED;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = 0;
		break;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		*(bool *)data = false;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(CUdeviceptr *)data = f->base;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)data = f->size;
		break;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*(bool *)data = true;
		break;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		*(unsigned long long *)data = f->handle_types;
		break;
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		*(bool *)data = false;
		break;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*(unsigned *)data = (unsigned)f->access;
		break;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(void **)data = NULL;
		break;
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		*(size_t *)data = f->mapping_size;
		break;
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		*(CUdeviceptr *)data = f->mapping;
		break;
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		*(unsigned long long *)data = f->id;
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

CUDA_API(cuPointerGetAttribute, void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
	ENTER();
	struct facts facts;
	bool known;

	if (!data || !address)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&memory_lock);
	known = look(address, &facts);
	pthread_mutex_unlock(&memory_lock);
	return known ? answer(data, attribute, address, &facts) : CUDA_ERROR_INVALID_VALUE;
}

/* Unlike the single form, this one fails for nobody: unknown addresses get zeros. */
CUDA_API(cuPointerGetAttributes, unsigned int count, CUpointer_attribute *attributes, void **data,
	 CUdeviceptr address)
{
	ENTER();
	struct facts facts;
	bool known;

	if (!count || !attributes || !data)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&memory_lock);
	known = look(address, &facts);
	pthread_mutex_unlock(&memory_lock);
	for (unsigned i = 0; i < count; i++) {
		if (known)
			answer(data[i], attributes[i], address, &facts);
		else if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
			*(int *)data[i] = -2;
		else if (attributes[i] == CU_POINTER_ATTRIBUTE_CONTEXT ||
			 attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_POINTER ||
			 attributes[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER)
			*(void **)data[i] = NULL;
		else if (attributes[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
			*(unsigned *)data[i] = 0;
	}
	return CUDA_SUCCESS;
}

CUDA_API(cuPointerSetAttribute, const void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
	ENTER_CONTEXT(ctx);
	if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !memory_known(address, 1))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}
