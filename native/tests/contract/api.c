// SPDX-License-Identifier: Apache-2.0
#include "api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

struct cu cu;

static void *library;

void *api_symbol(const char *name)
{
	return dlsym(library, name);
}

static void *symbol(const char *name)
{
	void *address = dlsym(library, name);

	if (!address) {
		fprintf(stderr, "no %s\n", name);
		exit(77);
	}
	return address;
}

void api_load(const char *file)
{
	library = dlopen(file, RTLD_NOW);
	if (!library) {
		fprintf(stderr, "no driver: %s\n", dlerror());
		exit(77);
	}
#define F(name, exported, ...) *(void **)&cu.name = symbol(#exported);
	DRIVER_FUNCTIONS(F)
#undef F
}
