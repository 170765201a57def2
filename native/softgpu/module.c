// SPDX-License-Identifier: Apache-2.0
/* Modules and libraries: what a PTX text declares. */
#include "module.h"
#include "ptx.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MAGIC 0xc0de0004

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct module *modules;

static CUresult add_function(struct module *module, const struct declaration *d)
{
	struct function *f = calloc(1, sizeof(*f));

	if (!f || !(f->name = strndup(d->name, d->length))) {
		free(f);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	f->magic = MAGIC;
	f->module = module;
	f->kernel = kernel_find(d->name, d->length);
	f->next = module->functions;
	module->functions = f;
	return CUDA_SUCCESS;
}

/* Globals start as zeros; initialisers in the text are not read. */
static CUresult add_global(struct module *module, const struct declaration *d)
{
	struct global *g = calloc(1, sizeof(*g));
	struct block *block;
	CUresult result;

	if (!g || !(g->name = strndup(d->name, d->length))) {
		free(g);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	g->size = d->size;
	g->next = module->globals;
	module->globals = g;
	pthread_mutex_lock(&memory_lock);
	result = heap_alloc(module->ctx, d->size, &block);
	if (!result)
		g->address = block->address;
	pthread_mutex_unlock(&memory_lock);
	if (!result)
		memset(memory_at(g->address, g->size, PROT_WRITE), 0, g->size);
	return result;
}

/* Functions stay: a stale handle is recognised. */
static void discard(struct module *module)
{
	for (struct function *f = module->functions; f; f = f->next)
		f->magic = 0;
	for (struct global *g = module->globals, *next; g; g = next) {
		next = g->next;
		pthread_mutex_lock(&memory_lock);
		heap_free(g->address);
		pthread_mutex_unlock(&memory_lock);
		free(g->name);
		free(g);
	}
	free(module);
}

CUresult module_load(struct context *ctx, const void *image, bool library, struct module **out)
{
	struct declaration d;
	struct module *module;
	const char *at = image;
	CUresult result = ptx_check(at);
	int found = 0;

	if (result)
		return result;
	module = calloc(1, sizeof(*module));
	if (!module)
		return CUDA_ERROR_OUT_OF_MEMORY;
	module->ctx = ctx;
	module->library = library;
	while (!result && (found = ptx_next(&at, &d)) > 0)
		result = d.size ? add_global(module, &d) : add_function(module, &d);
	if (found < 0)
		result = CUDA_ERROR_INVALID_PTX;
	if (result) {
		discard(module);
		return result;
	}
	pthread_mutex_lock(&lock);
	module->next = modules;
	modules = module;
	pthread_mutex_unlock(&lock);
	*out = module;
	return CUDA_SUCCESS;
}

struct module *module_find(const void *handle, bool library)
{
	struct module *m;

	pthread_mutex_lock(&lock);
	for (m = modules; m && (m != handle || (library && !m->library)); m = m->next)
		;
	pthread_mutex_unlock(&lock);
	return m;
}

CUresult module_unload(struct module *module)
{
	struct module **at = &modules;

	pthread_mutex_lock(&lock);
	while (*at && *at != module)
		at = &(*at)->next;
	if (*at)
		*at = module->next;
	pthread_mutex_unlock(&lock);
	discard(module);
	return CUDA_SUCCESS;
}

static struct module *module_of(struct context *ctx)
{
	struct module *m;

	pthread_mutex_lock(&lock);
	for (m = modules; m && (m->library || m->ctx != ctx); m = m->next)
		;
	pthread_mutex_unlock(&lock);
	return m;
}

/* A context goes, with its modules. */
void module_forget(struct context *ctx)
{
	struct module *m;

	while ((m = module_of(ctx)))
		module_unload(m);
}

struct function *module_function(struct module *module, const char *name)
{
	struct function *f = module->functions;

	while (f && strcmp(f->name, name) != 0)
		f = f->next;
	return f && f->kernel ? f : NULL;
}

struct function *function_find(const void *handle)
{
	struct function *f = (struct function *)handle;

	return f && f->magic == MAGIC ? f : NULL;
}
