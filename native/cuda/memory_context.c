// SPDX-License-Identifier: Apache-2.0
/* The contexts of the process: what has to be idle before memory goes, and who owns which memory. */
#include "memory.h"

#include "gate.h"

static struct context contexts[CONTEXTS];
static CUcontext primaries[GPUS];

/* Under the lock. */
struct context *context_know(CUcontext handle, int device)
{
	struct context *free = NULL;

	for (int i = 0; i < CONTEXTS; i++) {
		if (contexts[i].handle == handle) {
			contexts[i].device = device;
			return &contexts[i];
		}
		if (!free && !contexts[i].handle)
			free = &contexts[i];
	}
	if (free)
		*free = (struct context){ handle, device };
	return free;
}

struct context *context_at(unsigned int index)
{
	return &contexts[index];
}

unsigned int context_index(const struct context *context)
{
	return context - contexts;
}

static struct context *known(CUcontext handle)
{
	for (int i = 0; i < CONTEXTS; i++)
		if (handle && contexts[i].handle == handle)
			return &contexts[i];
	return NULL;
}

CUresult context_synchronize(CUcontext handle)
{
	CUcontext current = NULL;
	CUresult result;

	if (driver_CtxGetCurrent(&current) == CUDA_SUCCESS && current == handle)
		return driver_CtxSynchronize();
	result = driver_CtxPushCurrent_v2(handle);
	if (result)
		return result;
	result = driver_CtxSynchronize();
	driver_CtxPopCurrent_v2(&current);
	return result;
}

/* A primary context that nobody retains keeps its handle, and has nothing to wait for. */
static bool is_active(const struct context *context)
{
	unsigned int flags;
	int active = 1;

	if (!context->handle)
		return false;
	if (context->device >= 0 && context->device < GPUS && primaries[context->device] == context->handle)
		driver_DevicePrimaryCtxGetState(context->device, &flags, &active);
	return active;
}

/* Called while no call that makes or destroys a context is inside. */
CUresult contexts_drain(uint32_t *n)
{
	*n = 0;
	for (int i = 0; i < CONTEXTS; i++) {
		CUresult result;

		if (!is_active(&contexts[i]))
			continue;
		result = context_synchronize(contexts[i].handle);
		if (result)
			return result;
		++*n;
	}
	return CUDA_SUCCESS;
}

uint32_t contexts_on(int device)
{
	uint32_t n = 0;

	for (int i = 0; i < CONTEXTS; i++)
		n += contexts[i].device == device && is_active(&contexts[i]);
	return n;
}

bool context_enter(int device)
{
	for (int i = 0; i < CONTEXTS; i++)
		if (contexts[i].device == device && is_active(&contexts[i]) &&
		    driver_CtxPushCurrent_v2(contexts[i].handle) == CUDA_SUCCESS)
			return true;
	return false;
}

void context_leave(void)
{
	CUcontext handle;

	driver_CtxPopCurrent_v2(&handle);
}

void contexts_forget(void)
{
	__builtin_memset(contexts, 0, sizeof(contexts));
	__builtin_memset(primaries, 0, sizeof(primaries));
}

/* The calls. */

static void learn(CUcontext handle, int device)
{
	memory_lock();
	context_know(handle, device);
	memory_unlock();
}

#define LEARN(name, parameters, arguments, made, device) \
	CUresult replaced_##name parameters;             \
	CUresult replaced_##name parameters              \
	{                                                \
		CUresult(*real) parameters;              \
		CUresult result;                         \
                                                         \
		real = real_function(ENTRY_##name);      \
		gate_enter();                            \
		result = real arguments;                 \
		if (result == CUDA_SUCCESS)              \
			learn(made, device);             \
		gate_leave();                            \
		return result;                           \
	}

LEARN(cuCtxCreate_v2, (CUcontext * ctx, unsigned int flags, CUdevice device), (ctx, flags, device), *ctx,
      device)
LEARN(cuCtxCreate_v3,
      (CUcontext * ctx, CUexecAffinityParam *affinity, int n, unsigned int flags, CUdevice device),
      (ctx, affinity, n, flags, device), *ctx, device)
LEARN(cuCtxCreate_v4, (CUcontext * ctx, CUctxCreateParams *params, unsigned int flags, CUdevice device),
      (ctx, params, flags, device), *ctx, device)

CUresult replaced_cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice device);
CUresult replaced_cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice device)
{
	CUresult (*real)(CUcontext *, CUdevice) = real_function(ENTRY_cuDevicePrimaryCtxRetain);
	CUresult result;

	gate_enter();
	result = real(ctx, device);
	if (result == CUDA_SUCCESS) {
		learn(*ctx, device);
		if (device >= 0 && device < GPUS)
			primaries[device] = *ctx;
	}
	gate_leave();
	return result;
}

static int device_of(CUcontext handle)
{
	CUdevice device = -1;

	if (driver_CtxPushCurrent_v2(handle) != CUDA_SUCCESS)
		return -1;
	if (driver_CtxGetDevice(&device) != CUDA_SUCCESS)
		device = -1;
	context_leave();
	return device;
}

CUresult replaced_cuCtxFromGreenCtx(CUcontext *ctx, void *green);
CUresult replaced_cuCtxFromGreenCtx(CUcontext *ctx, void *green)
{
	CUresult (*real)(CUcontext *, void *) = real_function(ENTRY_cuCtxFromGreenCtx);
	CUresult result;

	gate_enter();
	result = real(ctx, green);
	if (result == CUDA_SUCCESS)
		learn(*ctx, device_of(*ctx));
	gate_leave();
	return result;
}

/* The driver has freed what is its own of that context; ours does not go by itself. */
static void gone(CUcontext handle, bool for_good)
{
	struct context *context;

	memory_lock();
	context = known(handle);
	memory_unlock();
	gate_context_gone(handle);
	others_of_context_remove(handle);
	if (!context)
		return;
	blocks_of_context_free(context);
	if (for_good) {
		memory_lock();
		*context = (struct context){ 0 };
		memory_unlock();
	}
}

static CUresult destroy(int entry, CUcontext handle)
{
	CUresult (*real)(CUcontext) = real_function(entry);
	CUresult result;

	gate_enter();
	result = real(handle);
	if (result == CUDA_SUCCESS)
		gone(handle, true);
	gate_leave();
	return result;
}

CUresult replaced_cuCtxDestroy(CUcontext handle);
CUresult replaced_cuCtxDestroy(CUcontext handle)
{
	return destroy(ENTRY_cuCtxDestroy, handle);
}

CUresult replaced_cuCtxDestroy_v2(CUcontext handle);
CUresult replaced_cuCtxDestroy_v2(CUcontext handle)
{
	return destroy(ENTRY_cuCtxDestroy_v2, handle);
}

/* A release ends the primary context if it was the last; a reset always. */
static CUresult end_primary(int entry, CUdevice device, bool always)
{
	CUresult (*real)(CUdevice) = real_function(entry);
	unsigned int flags;
	CUresult result;
	int active = 1;

	gate_enter();
	result = real(device);
	if (result == CUDA_SUCCESS && device >= 0 && device < GPUS && primaries[device] &&
	    (always || (driver_DevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && !active)))
		gone(primaries[device], false);
	gate_leave();
	return result;
}

CUresult replaced_cuDevicePrimaryCtxRelease(CUdevice device);
CUresult replaced_cuDevicePrimaryCtxRelease(CUdevice device)
{
	return end_primary(ENTRY_cuDevicePrimaryCtxRelease, device, false);
}

CUresult replaced_cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult replaced_cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	return end_primary(ENTRY_cuDevicePrimaryCtxRelease_v2, device, false);
}

CUresult replaced_cuDevicePrimaryCtxReset(CUdevice device);
CUresult replaced_cuDevicePrimaryCtxReset(CUdevice device)
{
	return end_primary(ENTRY_cuDevicePrimaryCtxReset, device, true);
}

CUresult replaced_cuDevicePrimaryCtxReset_v2(CUdevice device);
CUresult replaced_cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	return end_primary(ENTRY_cuDevicePrimaryCtxReset_v2, device, true);
}

/* Peer access of contexts does not reach memory that was mapped by handle, so ours gets it by itself.
 * It stays when the program takes it back: nobody relies on a fault. */
CUresult replaced_cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags);
CUresult replaced_cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
	CUresult (*real)(CUcontext, unsigned int) = real_function(ENTRY_cuCtxEnablePeerAccess);
	CUdevice device = -1;
	CUresult result;
	int owner;

	gate_enter();
	result = real(peer, flags);
	if (result == CUDA_SUCCESS && driver_CtxGetDevice(&device) == CUDA_SUCCESS) {
		owner = device_of(peer);
		if (owner >= 0 && owner != device)
			gpu_share(owner, device);
	}
	gate_leave();
	return result;
}
