// SPDX-License-Identifier: Apache-2.0
/* Contexts: what they own goes with them. */
#include "replaced.h"

static CUcontext current(void)
{
	CUcontext ctx = NULL;

	NEED(CALL(cuCtxGetCurrent, (CUcontext *), &ctx));
	return ctx;
}

static CUresult range_of(CUdeviceptr memory)
{
	CUdeviceptr base;
	size_t size;

	return CALL(cuMemGetAddressRange_v2, (CUdeviceptr *, size_t *, CUdeviceptr), &base, &size, memory);
}

static void make(CUcontext *made)
{
	CUctxCreateParams parameters = { 0 };

	code("create-v4", CALL(cuCtxCreate_v4, (CUcontext *, CUctxCreateParams *, unsigned, CUdevice), made,
			       &parameters, 0, 0));
	code("create-v4-destroy", CALL(cuCtxDestroy_v2, (CUcontext), *made));
	code("create-v4-null",
	     CALL(cuCtxCreate_v4, (CUcontext *, CUctxCreateParams *, unsigned, CUdevice), made, NULL, 0, 0));
	code("create-v4-null-destroy", CALL(cuCtxDestroy_v2, (CUcontext), *made));
	code("create-v3",
	     CALL(cuCtxCreate_v3, (CUcontext *, void *, int, unsigned, CUdevice), made, NULL, 0, 0, 0));
	code("create-v3-destroy", CALL(cuCtxDestroy_v2, (CUcontext), *made));
	code("create-flags", CALL(cuCtxCreate_v2, (CUcontext *, unsigned, CUdevice), made, 0x4000, 0));
	code("create-elsewhere", CALL(cuCtxCreate_v2, (CUcontext *, unsigned, CUdevice), made, 0, 4711));
	code("create-null", CALL(cuCtxCreate_v2, (CUcontext *, unsigned, CUdevice), NULL, 0, 0));
	code("create", CALL(cuCtxCreate_v2, (CUcontext *, unsigned, CUdevice), made, 0, 0));
	yes("create-current", current() == *made);
}

void group_context(void)
{
	CUcontext primary, made = NULL, seen = NULL;
	CUdeviceptr theirs, in_primary;

	primary = open_primary();
	in_primary = allocate(3 * MIB);
	make(&made);
	theirs = allocate(3 * MIB);
	NEED(CALL(cuPointerGetAttribute, (void *, int, CUdeviceptr), &seen, 1, theirs));
	yes("belongs-to-it", seen == made);
	NEED(CALL(cuPointerGetAttribute, (void *, int, CUdeviceptr), &seen, 1, in_primary));
	yes("belongs-to-primary", seen == primary);
	code("free-of-another", release(in_primary));
	code("synchronize", CALL(cuCtxSynchronize, (void)));
	code("set", CALL(cuMemsetD8_v2, (CUdeviceptr, unsigned char, size_t), theirs, 1, MIB));
	code("destroy", CALL(cuCtxDestroy_v2, (CUcontext), made));
	yes("current-after", current() == primary);
	code("range-after-destroy", range_of(theirs));
	code("free-after-destroy", release(theirs));
	code("free-in-primary", release(in_primary));
	code("destroy-null", CALL(cuCtxDestroy_v2, (CUcontext), NULL));
	code("create-again", CALL(cuCtxCreate_v2, (CUcontext *, unsigned, CUdevice), &made, 0, 0));
	theirs = allocate(100);
	code("set-null", CALL(cuCtxSetCurrent, (CUcontext), NULL));
	code("free-small", release(theirs));
	code("destroy-again", CALL(cuCtxDestroy_v2, (CUcontext), made));
}

static void state(const char *when)
{
	unsigned flags = 77;
	int active = 77;

	codes(CALL(cuDevicePrimaryCtxGetState, (CUdevice, unsigned *, int *), 0, &flags, &active), "%s-state",
	      when);
	value("state", "%s: flags %u active %d", when, flags, active);
}

void group_primary(void)
{
	CUcontext ctx = NULL, again = NULL;
	CUdeviceptr memory, small;

	code("retain-before-init", CALL(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice), &ctx, 0));
	ctx = open_primary();
	state("open");
	code("retain", CALL(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice), &again, 0));
	yes("retain-same", again == ctx);
	code("retain-elsewhere", CALL(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice), &again, 4711));
	code("retain-null", CALL(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice), NULL, 0));
	memory = allocate(3 * MIB);
	small = allocate(100);
	code("release", CALL(cuDevicePrimaryCtxRelease_v2, (CUdevice), 0));
	code("set", CALL(cuMemsetD8_v2, (CUdeviceptr, unsigned char, size_t), memory, 1, MIB));
	code("reset", CALL(cuDevicePrimaryCtxReset_v2, (CUdevice), 0));
	state("reset");
	code("range-after-reset", range_of(memory));
	code("free-after-reset", release(memory));
	code("free-small-after-reset", release(small));
	ctx = open_primary();
	memory = allocate(3 * MIB);
	code("set-again", CALL(cuMemsetD8_v2, (CUdeviceptr, unsigned char, size_t), memory, 2, MIB));
	value("content", "%08x", first_word(memory));
	code("release-again", CALL(cuDevicePrimaryCtxRelease_v2, (CUdevice), 0));
	code("release-last", CALL(cuDevicePrimaryCtxRelease_v2, (CUdevice), 0));
	state("released");
	code("free-after-release", release(memory));
	code("release-beyond", CALL(cuDevicePrimaryCtxRelease_v2, (CUdevice), 0));
	code("reset-elsewhere", CALL(cuDevicePrimaryCtxReset_v2, (CUdevice), 4711));
	code("old-release", CALL(cuDevicePrimaryCtxRelease, (CUdevice), 0));
	code("old-reset", CALL(cuDevicePrimaryCtxReset, (CUdevice), 0));
	open_primary();
	code("alloc-at-last", release(allocate(3 * MIB)));
}
