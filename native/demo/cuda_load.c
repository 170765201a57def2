// SPDX-License-Identifier: Apache-2.0
#include "cuda_load.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

struct cuda cuda;

static void *symbol(void *library, const char *name)
{
	void *address = dlsym(library, name);

	if (!address) {
		fprintf(stderr, "libcuda.so.1 has no %s\n", name);
		exit(77);
	}
	return address;
}

void cuda_load(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	if (!library) {
		fprintf(stderr, "no GPU driver: %s\n", dlerror());
		exit(77);
	}
#define F(name, exported, ...) *(void **)&cuda.name = symbol(library, #exported);
	CUDA_FUNCTIONS(F)
#undef F
}

void cuda_failed(CUresult result, const char *call)
{
	const char *name = "unknown";

	cuda.GetErrorName(result, &name);
	fprintf(stderr, "%s: %s (%d)\n", call, name, (int)result);
	exit(8);
}
