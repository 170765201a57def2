// SPDX-License-Identifier: Apache-2.0
/* A libcuda of a few functions, which behaves in look-ups as the real one does. */
#include "stub.h"

#include <stddef.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef int CUresult;

static CUresult internal_stream_query(void *stream)
{
	return 600;
}

static CUresult later_init(unsigned int flags, void *more)
{
	return 0;
}

EXPORT struct stub stub = { .unknown_variant = later_init, .internal = internal_stream_query };

EXPORT CUresult cuInit(unsigned int flags);
EXPORT CUresult cuInit(unsigned int flags)
{
	__atomic_fetch_add(&stub.calls, 1, __ATOMIC_SEQ_CST);
	return stub.init_result;
}

/* A variant that the table does not know. */
EXPORT CUresult cuInit_v9(unsigned int flags, void *more);
EXPORT CUresult cuInit_v9(unsigned int flags, void *more)
{
	return 0;
}

/* A function that the table does not know. */
EXPORT CUresult cuOfTomorrow(void);
EXPORT CUresult cuOfTomorrow(void)
{
	return 42;
}

EXPORT CUresult cuDriverGetVersion(int *version);
EXPORT CUresult cuDriverGetVersion(int *version)
{
	if (!version)
		return 1;
	*version = 13000;
	return 0;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *free, size_t *total);
EXPORT CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
	if (free)
		*free = 1;
	if (total)
		*total = 2;
	return 0;
}

EXPORT CUresult cuStreamQuery(void *stream);
EXPORT CUresult cuStreamQuery(void *stream)
{
	return 600;
}

EXPORT CUresult cuStreamQuery_ptsz(void *stream);
EXPORT CUresult cuStreamQuery_ptsz(void *stream)
{
	return 601;
}

/* Its real signature: five arguments on the stack. */
EXPORT CUresult cuLaunchKernel(void *f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
			       unsigned int by, unsigned int bz, unsigned int shared, void *stream,
			       void **params, void **extra);
EXPORT CUresult cuLaunchKernel(void *f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
			       unsigned int by, unsigned int bz, unsigned int shared, void *stream,
			       void **params, void **extra)
{
	/* One by one: a wide load from two arguments on the stack would stall, which cost.c would see. */
	volatile uint64_t *to = stub.integers;

	*to++ = (uintptr_t)f;
	*to++ = gx;
	*to++ = gy;
	*to++ = gz;
	*to++ = bx;
	*to++ = by;
	*to++ = bz;
	*to++ = shared;
	*to++ = (uintptr_t)stream;
	*to++ = (uintptr_t)params;
	*to++ = (uintptr_t)extra;
	return 7;
}

/* Not its signature: more floating point than there are registers for, and an integer between. */
EXPORT CUresult cuParamSetf(double a, double b, double c, double d, int n, double e, double f, double g,
			    double h, double i, double j);
EXPORT CUresult cuParamSetf(double a, double b, double c, double d, int n, double e, double f, double g,
			    double h, double i, double j)
{
	double got[] = { a, b, c, d, e, f, g, h, i, j };

	memcpy(stub.reals, got, sizeof(got));
	return n;
}

EXPORT CUresult cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags);
EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
				    int *status);

static void *chosen(const char *symbol, int version, uint64_t flags)
{
	if (!strcmp(symbol, "cuInit"))
		return version >= STUB_LATER ? stub.unknown_variant : (void *)cuInit;
	if (!strcmp(symbol, "cuStreamQuery") && version >= STUB_LATER)
		return stub.internal;
	if (!strcmp(symbol, "cuStreamQuery"))
		return flags & 2 ? (void *)cuStreamQuery_ptsz : (void *)cuStreamQuery;
	if (!strcmp(symbol, "cuMemGetInfo"))
		return cuMemGetInfo_v2;
	if (!strcmp(symbol, "cuGetProcAddress"))
		return version >= 12000 ? (void *)cuGetProcAddress_v2 : (void *)cuGetProcAddress;
	return NULL;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *status)
{
	if (!symbol || !function)
		return 1;
	*function = chosen(symbol, version, flags);
	if (status)
		*status = *function ? 0 : 1;
	return *function ? 0 : 500;
}

CUresult cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags)
{
	return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}
