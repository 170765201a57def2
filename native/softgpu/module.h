/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "softgpu.h"

/* A kernel of a module. Both CUfunction and CUkernel point to one. */
struct function {
	struct function *next;
	uint32_t magic;
	struct module *module;
	char *name;
	const struct kernel *kernel; /* NULL: declared, but the software GPU cannot run it */
};

struct global {
	struct global *next;
	char *name;
	uint64_t address;
	size_t size;
};

/* A module of a context, or a library, which belongs to none. */
struct module {
	struct module *next;
	struct context *ctx;
	bool library;
	struct function *functions;
	struct global *globals;
};

CUresult module_load(struct context *ctx, const void *image, bool library, struct module **out);
CUresult module_unload(struct module *module);
struct module *module_find(const void *handle, bool library);
struct function *module_function(struct module *module, const char *name);
struct function *function_find(const void *handle);
