// SPDX-License-Identifier: Apache-2.0
/* What a call gets that the real library cannot serve.
 *
 * No real library: 303, "shared object initialization failed", which no program mistakes for a
 * machine without a GPU (100) and silently goes on without. A function that this driver is too old
 * for: 801. Arguments are not looked at, so one function fits every signature. */
#include "library.h"

static CUresult not_loaded(void)
{
	return CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
}

static CUresult not_supported(void)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* Programs print what these two give without looking at their result. */
static CUresult error_name(CUresult error, const char **text)
{
	if (text)
		*text = error == CUDA_ERROR_SHARED_OBJECT_INIT_FAILED ? "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED"
								      : "CUDA_ERROR_UNKNOWN";
	return CUDA_SUCCESS;
}

static CUresult error_string(CUresult error, const char **text)
{
	if (text)
		*text = error == CUDA_ERROR_SHARED_OBJECT_INIT_FAILED
				? "diapause cannot load the real libcuda"
				: "unknown error";
	return CUDA_SUCCESS;
}

void *absent_function(int entry, bool loaded)
{
	if (loaded)
		return not_supported;
	if (entry == ENTRY_cuGetErrorName)
		return error_name;
	if (entry == ENTRY_cuGetErrorString)
		return error_string;
	return not_loaded;
}
