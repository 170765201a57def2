// SPDX-License-Identifier: Apache-2.0
/* The module functions of the driver API. */
#include "module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

CUDA_API(cuModuleLoadDataEx, CUmodule *out, const void *image, unsigned int count, CUjit_option *options,
	 void **values)
{
	ENTER_CONTEXT(ctx);
	struct module *module;
	CUresult result;

	if (!out || !image)
		return CUDA_ERROR_INVALID_VALUE;
	result = module_load(ctx, image, false, &module);
	if (!result)
		*out = (CUmodule)module;
	return result;
}

CUDA_API(cuModuleLoadData, CUmodule *module, const void *image)
{
	return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

CUDA_API(cuModuleLoadFatBinary, CUmodule *module, const void *image)
{
	return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

/* The text of a file, with a 0 behind it; the caller frees it. */
static char *read_file(const char *name)
{
	FILE *file = fopen(name, "re");
	char *text = NULL;
	size_t size;

	if (!file)
		return NULL;
	if (fseek(file, 0, SEEK_END) == 0) {
		size = (size_t)ftell(file);
		rewind(file);
		text = calloc(1, size + 8);
		if (text && fread(text, 1, size, file) != size) {
			free(text);
			text = NULL;
		}
	}
	fclose(file);
	return text;
}

CUDA_API(cuModuleLoad, CUmodule *module, const char *name)
{
	ENTER_CONTEXT(ctx);
	CUresult result;
	char *text;

	if (!module || !name)
		return CUDA_ERROR_INVALID_VALUE;
	text = read_file(name);
	if (!text)
		return CUDA_ERROR_FILE_NOT_FOUND;
	result = cuModuleLoadDataEx(module, text, 0, NULL, NULL);
	free(text);
	return result;
}

CUDA_API(cuModuleUnload, CUmodule handle)
{
	ENTER_CONTEXT(ctx);
	struct module *module = module_find(handle, false);

	if (!module)
		return CUDA_ERROR_INVALID_HANDLE;
	context_synchronize(ctx);
	return module_unload(module);
}

CUDA_API(cuModuleGetFunction, CUfunction *function, CUmodule handle, const char *name)
{
	ENTER_CONTEXT(ctx);
	struct module *module = module_find(handle, false);
	struct function *f;

	if (!function || !name || !*name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!module)
		return CUDA_ERROR_INVALID_HANDLE;
	f = module_function(module, name);
	if (!f)
		return CUDA_ERROR_NOT_FOUND;
	*function = (CUfunction)f;
	return CUDA_SUCCESS;
}

static CUresult find_global(CUdeviceptr *address, size_t *size, struct module *module, const char *name)
{
	struct global *g;

	if (!name || !module)
		return module ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
	for (g = module->globals; g && strcmp(g->name, name) != 0; g = g->next)
		;
	if (!g)
		return module_function(module, name) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_FOUND;
	if (address)
		*address = g->address;
	if (size)
		*size = g->size;
	return CUDA_SUCCESS;
}

CUDA_API(cuModuleGetGlobal_v2, CUdeviceptr *address, size_t *size, CUmodule handle, const char *name)
{
	ENTER_CONTEXT(ctx);
	return find_global(address, size, module_find(handle, false), name);
}

CUDA_API(cuModuleGetFunctionCount, unsigned int *count, CUmodule handle)
{
	ENTER();
	struct module *module = module_find(handle, false);

	if (!count || !module)
		return CUDA_ERROR_INVALID_VALUE;
	*count = 0;
	for (struct function *f = module->functions; f; f = f->next)
		++*count;
	return CUDA_SUCCESS;
}

CUDA_API(cuLibraryGetGlobal, CUdeviceptr *address, size_t *size, CUlibrary library, const char *name)
{
	ENTER_CONTEXT(ctx);
	return find_global(address, size, module_find(library, true), name);
}
