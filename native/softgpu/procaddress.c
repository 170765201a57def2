// SPDX-License-Identifier: Apache-2.0
/* cuGetProcAddress: functions by name, CUDA version and kind of default stream. */
#include "api.h"
#include "softgpu.h"

#include <string.h>

static void *address(const struct api *f, cuuint64_t flags)
{
	bool per_thread = flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

	return (void *)(per_thread ? f->per_thread : f->legacy);
}

/* The newest variant that a program built for `version` knows. Not finding one is no error here:
 * the pointer is NULL then. */
CUDA_API(cuGetProcAddress_v2, const char *symbol, void **out, int version, cuuint64_t flags,
	 CUdriverProcAddressQueryResult *status)
{
	const struct api *best = NULL;
	CUdriverProcAddressQueryResult answer = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;

	if (!symbol || !out || flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM ||
	    version > DRIVER_VERSION)
		return CUDA_ERROR_INVALID_VALUE;
	for (const struct api *f = api_table; f->name; f++) {
		if (strcmp(f->name, symbol) != 0)
			continue;
		answer = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
		if (f->since <= version)
			best = f;
	}
	if (best)
		answer = CU_GET_PROC_ADDRESS_SUCCESS;
	if (status)
		*status = answer;
	*out = best ? address(best, flags) : NULL;
	return CUDA_SUCCESS;
}

CUDA_API(cuGetProcAddress, const char *symbol, void **out, int version, cuuint64_t flags)
{
	CUresult result = cuGetProcAddress_v2(symbol, out, version, flags, NULL);

	return !result && !*out ? CUDA_ERROR_NOT_FOUND : result;
}
