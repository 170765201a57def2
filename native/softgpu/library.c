// SPDX-License-Identifier: Apache-2.0
/* Libraries and kernels that belong to no context. */
#include "module.h"

#include <string.h>

CUDA_API(cuLibraryLoadData, CUlibrary *out, const void *code, CUjit_option *jit_options, void **jit_values,
	 unsigned int jit_count, CUlibraryOption *options, void **values, unsigned int count)
{
	ENTER();
	struct module *library;
	CUresult result;

	if (!out || !code)
		return CUDA_ERROR_INVALID_VALUE;
	result = module_load(NULL, code, true, &library);
	if (!result)
		*out = (CUlibrary)library;
	return result;
}

CUDA_API(cuLibraryUnload, CUlibrary handle)
{
	ENTER();
	struct module *library = module_find(handle, true);
	struct context *ctx;

	if (!library)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!context_current(&ctx))
		context_synchronize(ctx);
	return module_unload(library);
}

CUDA_API(cuLibraryGetKernel, CUkernel *kernel, CUlibrary handle, const char *name)
{
	ENTER();
	struct module *library = module_find(handle, true);
	struct function *f;

	if (!kernel || !name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!library)
		return CUDA_ERROR_INVALID_HANDLE;
	f = module_function(library, name);
	if (!f)
		return CUDA_ERROR_NOT_FOUND;
	*kernel = (CUkernel)f;
	return CUDA_SUCCESS;
}

CUDA_API(cuLibraryGetModule, CUmodule *module, CUlibrary handle)
{
	ENTER_CONTEXT(ctx);
	struct module *library = module_find(handle, true);

	if (!module)
		return CUDA_ERROR_INVALID_VALUE;
	if (!library)
		return CUDA_ERROR_INVALID_HANDLE;
	*module = (CUmodule)library;
	return CUDA_SUCCESS;
}

CUDA_API(cuLibraryGetKernelCount, unsigned int *count, CUlibrary handle)
{
	ENTER();
	struct module *library = module_find(handle, true);

	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	if (!library)
		return CUDA_ERROR_INVALID_HANDLE;
	*count = 0;
	for (struct function *f = library->functions; f; f = f->next)
		++*count;
	return CUDA_SUCCESS;
}

CUDA_API(cuKernelGetFunction, CUfunction *function, CUkernel kernel)
{
	ENTER_CONTEXT(ctx);
	if (!function)
		return CUDA_ERROR_INVALID_VALUE;
	if (!function_find(kernel))
		return CUDA_ERROR_INVALID_HANDLE;
	*function = (CUfunction)kernel;
	return CUDA_SUCCESS;
}

CUDA_API(cuKernelGetLibrary, CUlibrary *library, CUkernel kernel)
{
	ENTER();
	struct function *f = function_find(kernel);

	if (!library)
		return CUDA_ERROR_INVALID_VALUE;
	if (!f)
		return CUDA_ERROR_INVALID_HANDLE;
	*library = (CUlibrary)f->module;
	return CUDA_SUCCESS;
}
