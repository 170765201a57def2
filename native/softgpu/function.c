// SPDX-License-Identifier: Apache-2.0
/* What a kernel says about itself. */
#include "module.h"

static CUresult attribute_of(int *value, CUfunction_attribute attribute, const void *handle)
{
	if (!value || (unsigned)attribute >= CU_FUNC_ATTRIBUTE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (!function_find(handle))
		return CUDA_ERROR_INVALID_HANDLE;
	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*value = 1024;
		break;
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
		*value = 32;
		break;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
		*value = 75;
		break;
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		*value = 10 * COMPUTE_MAJOR + COMPUTE_MINOR;
		break;
	default:
		*value = 0;
	}
	return CUDA_SUCCESS;
}

CUDA_API(cuFuncGetAttribute, int *value, CUfunction_attribute attribute, CUfunction function)
{
	ENTER_CONTEXT(ctx);
	return attribute_of(value, attribute, function);
}

CUDA_API(cuKernelGetAttribute, int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice dev)
{
	ENTER();
	return dev == 0 ? attribute_of(value, attribute, kernel) : CUDA_ERROR_INVALID_DEVICE;
}

CUDA_API(cuFuncSetAttribute, CUfunction function, CUfunction_attribute attribute, int value)
{
	ENTER_CONTEXT(ctx);
	if ((unsigned)attribute >= CU_FUNC_ATTRIBUTE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	return function_find(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUDA_API(cuKernelSetAttribute, CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice dev)
{
	ENTER();
	if ((unsigned)attribute >= CU_FUNC_ATTRIBUTE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	return function_find(kernel) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUDA_API(cuFuncSetCacheConfig, CUfunction function, CUfunc_cache config)
{
	ENTER_CONTEXT(ctx);
	return function_find(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUDA_API(cuFuncSetSharedMemConfig, CUfunction function, CUsharedconfig config)
{
	ENTER_CONTEXT(ctx);
	return function_find(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUDA_API(cuFuncGetModule, CUmodule *module, CUfunction function)
{
	ENTER();
	struct function *f = function_find(function);

	if (!module)
		return CUDA_ERROR_INVALID_VALUE;
	if (!f)
		return CUDA_ERROR_INVALID_HANDLE;
	*module = (CUmodule)f->module;
	return CUDA_SUCCESS;
}

static CUresult name_of(const char **name, const void *handle)
{
	struct function *f = function_find(handle);

	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!f)
		return CUDA_ERROR_INVALID_HANDLE;
	*name = f->name;
	return CUDA_SUCCESS;
}

CUDA_API(cuFuncGetName, const char **name, CUfunction function)
{
	ENTER();
	return name_of(name, function);
}

CUDA_API(cuKernelGetName, const char **name, CUkernel kernel)
{
	ENTER();
	return name_of(name, kernel);
}

static CUresult param_of(const void *handle, size_t index, size_t *offset, size_t *size)
{
	struct function *f = function_find(handle);
	size_t at = 0;

	if (!offset)
		return CUDA_ERROR_INVALID_VALUE;
	if (!f)
		return CUDA_ERROR_INVALID_HANDLE;
	if (index >= f->kernel->params)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < index; i++)
		at = ALIGN_UP(at, f->kernel->size[i]) + f->kernel->size[i];
	*offset = ALIGN_UP(at, f->kernel->size[index]);
	if (size)
		*size = f->kernel->size[index];
	return CUDA_SUCCESS;
}

CUDA_API(cuFuncGetParamInfo, CUfunction function, size_t index, size_t *offset, size_t *size)
{
	ENTER();
	return param_of(function, index, offset, size);
}

CUDA_API(cuKernelGetParamInfo, CUkernel kernel, size_t index, size_t *offset, size_t *size)
{
	ENTER();
	return param_of(kernel, index, offset, size);
}

CUDA_API(cuOccupancyMaxActiveBlocksPerMultiprocessor, int *blocks, CUfunction function, int block_size,
	 size_t shared)
{
	ENTER_CONTEXT(ctx);
	if (!blocks || block_size <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!function_find(function))
		return CUDA_ERROR_INVALID_HANDLE;
	*blocks = block_size > 1024 ? 0 : 2048 / block_size;
	return CUDA_SUCCESS;
}
