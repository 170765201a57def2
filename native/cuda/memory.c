// SPDX-License-Identifier: Apache-2.0
/* cuMemAlloc and what belongs to it. What we cannot do, and every mistake, goes to the driver: so the
 * program gets its answer, and never an error that it would not have had without us. */
#include "memory.h"

#include "gate.h"

#define CAPTURE_RELAXED 2 /* CU_STREAM_CAPTURE_MODE_RELAXED */
#define STREAM_CAPTURE_ERROR(result) ((int)(result) >= 900 && (int)(result) <= 907)

/* In a thread that a capture forbids it, the driver refuses to allocate and to free, and ends the capture.
 * Whether it does is asked with an allocation of its own. */
static CUresult capture_objection(void)
{
	int mode = CAPTURE_RELAXED;
	CUdeviceptr probe;
	CUresult result;

	if (!gate_captures() || driver_ThreadExchangeStreamCaptureMode(&mode))
		return CUDA_SUCCESS;
	driver_ThreadExchangeStreamCaptureMode(&(int){ mode });
	if (mode == CAPTURE_RELAXED)
		return CUDA_SUCCESS;
	result = driver_MemAlloc_v2(&probe, 1);
	if (result == CUDA_SUCCESS)
		driver_MemFree_v2(probe);
	return STREAM_CAPTURE_ERROR(result) ? result : CUDA_SUCCESS;
}

static CUresult allocate_ours(struct gpu *gpu, struct context *context, CUdeviceptr *address, size_t size)
{
	if (size > gpu->total)
		return CUDA_ERROR_OUT_OF_MEMORY;
	blocks_reap();
	return size < SMALL ? slab_alloc(gpu, context, size, address)
			    : large_alloc(gpu, context, size, address);
}

static CUresult allocate(CUdeviceptr *address, size_t size)
{
	struct context *context;
	uint64_t since = 0;
	struct gpu *gpu;
	CUresult result;

	gpu = address && size ? gpu_current(&context) : NULL;
	result = gpu ? capture_objection() : CUDA_SUCCESS;
	if (result)
		return result;
	do {
		if (gpu && allocate_ours(gpu, context, address, size) == CUDA_SUCCESS)
			return CUDA_SUCCESS;
		result = driver_MemAlloc_v2(address, size);
	} while (result == CUDA_ERROR_OUT_OF_MEMORY && gpu && size <= gpu->total && backing_wait(&since));
	if (result == CUDA_SUCCESS)
		other_add(*address, size, OTHER_NATIVE);
	return result;
}

CUresult replaced_cuMemAlloc_v2(CUdeviceptr *address, size_t size);
CUresult replaced_cuMemAlloc_v2(CUdeviceptr *address, size_t size)
{
	CUresult result;

	gate_enter();
	result = allocate(address, size);
	gate_leave();
	return result;
}

/* The pitch that the driver gives to rows of that width; it does not depend on their number. */
static CUresult ask_pitch(size_t *pitch, size_t width, unsigned int element)
{
	static _Atomic size_t known_width, known_pitch; /* each a hint for the other */
	static _Atomic unsigned int known_element;
	CUdeviceptr address;
	CUresult result;

	*pitch = atomic_load(&known_pitch);
	if (*pitch && width == atomic_load(&known_width) && element == atomic_load(&known_element) &&
	    *pitch == atomic_load(&known_pitch))
		return CUDA_SUCCESS;
	result = driver_MemAllocPitch_v2(&address, pitch, width, 1, element);
	if (result)
		return result;
	driver_MemFree_v2(address);
	atomic_store(&known_pitch, 0);
	atomic_store(&known_width, width);
	atomic_store(&known_element, element);
	atomic_store(&known_pitch, *pitch);
	return CUDA_SUCCESS;
}

static CUresult allocate_rows(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
			      unsigned int element)
{
	size_t wanted, size;
	CUresult result;

	if (address && pitch && width && height && !ask_pitch(&wanted, width, element) &&
	    !__builtin_mul_overflow(wanted, height, &size)) {
		result = allocate(address, size);
		if (result == CUDA_SUCCESS)
			*pitch = wanted;
		return result;
	}
	result = driver_MemAllocPitch_v2(address, pitch, width, height, element);
	if (result == CUDA_SUCCESS)
		other_add(*address, *pitch * height, OTHER_NATIVE);
	return result;
}

CUresult replaced_cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
				     unsigned int element);
CUresult replaced_cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
				     unsigned int element)
{
	CUresult result;

	gate_enter();
	result = allocate_rows(address, pitch, width, height, element);
	gate_leave();
	return result;
}

/* Programs rely on it that nothing uses the memory any more when this returns. */
static CUresult give_back(const struct block *block)
{
	CUresult result;

	if (gate_captures()) {
		block_defer(block);
		return CUDA_SUCCESS;
	}
	result = context_synchronize(context_at(block->context)->handle);
	if (STREAM_CAPTURE_ERROR(result)) {
		block_defer(block);
		return CUDA_SUCCESS;
	}
	if (result) { /* the context is broken, and its memory goes with it */
		block_keep(block);
		return result;
	}
	block_give_back(block);
	return CUDA_SUCCESS;
}

static CUresult release(CUdeviceptr address)
{
	struct block block;
	CUresult result;

	if (block_take(address, &block)) { /* no context is needed for it */
		result = capture_objection();
		if (result)
			block_keep(&block);
		else
			result = give_back(&block);
		blocks_reap();
		return result;
	}
	result = driver_MemFree_v2(address);
	if (result == CUDA_SUCCESS)
		other_remove(address);
	return result;
}

CUresult replaced_cuMemFree_v2(CUdeviceptr address);
CUresult replaced_cuMemFree_v2(CUdeviceptr address)
{
	CUresult result;

	gate_enter();
	result = release(address);
	gate_leave();
	return result;
}

/* The driver judges the call; we know better what lies there. */
CUresult replaced_cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr address);
CUresult replaced_cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr address)
{
	struct block block;
	enum where where;
	CUresult result;

	gate_enter();
	memory_lock();
	where = block_find(address, &block);
	memory_unlock();
	if (where == IN_WINDOW)
		address = 1; /* nothing of the program's is there, nor here */
	result = driver_MemGetAddressRange_v2(base, size, address);
	if (result == CUDA_SUCCESS && where == IN_BLOCK) {
		if (base)
			*base = block.address;
		if (size)
			*size = block.asked;
	}
	gate_leave();
	return result;
}

/* Stream-ordered freeing of memory that is not from a pool: the driver allows it. */
static CUresult release_async(int entry, int synchronize, CUdeviceptr address, void *stream)
{
	CUresult (*real)(CUdeviceptr, void *) = real_function(entry);
	CUresult (*wait)(void *) = real_function(synchronize);
	struct block block;
	CUresult result;

	if (gate_capturing(stream) || !block_take(address, &block)) {
		result = real(address, stream);
		if (result == CUDA_SUCCESS)
			other_remove(address);
		return result;
	}
	result = wait(stream);
	if (result && !STREAM_CAPTURE_ERROR(result)) {
		block_keep(&block);
		return result;
	}
	if (result)
		block_defer(&block);
	else
		block_give_back(&block);
	return CUDA_SUCCESS;
}

CUresult replaced_cuMemFreeAsync(CUdeviceptr address, void *stream);
CUresult replaced_cuMemFreeAsync(CUdeviceptr address, void *stream)
{
	CUresult result;

	gate_enter();
	result = release_async(ENTRY_cuMemFreeAsync, ENTRY_cuStreamSynchronize, address, stream);
	gate_leave();
	return result;
}

CUresult replaced_cuMemFreeAsync_ptsz(CUdeviceptr address, void *stream);
CUresult replaced_cuMemFreeAsync_ptsz(CUdeviceptr address, void *stream)
{
	CUresult result;

	gate_enter();
	result = release_async(ENTRY_cuMemFreeAsync_ptsz, ENTRY_cuStreamSynchronize_ptsz, address, stream);
	gate_leave();
	return result;
}
