// SPDX-License-Identifier: Apache-2.0
/* Another interposer: replaces puts the usual way, and, built with WRAP_DLSYM, dlsym as well. Built
 * with EARLY it is an allocator that looks up the real one before any constructor ran. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int interposer_calls;

#ifdef EARLY

static char arena[1 << 20];
static size_t used;
static void *(*next_malloc)(size_t);

EXPORT void *malloc(size_t size);
EXPORT void *malloc(size_t size)
{
	interposer_calls++;
	if (!next_malloc) {
		next_malloc = (void *(*)(size_t))1;
		next_malloc = dlsym(RTLD_NEXT, "malloc");
	}
	if (next_malloc != (void *(*)(size_t))1)
		return next_malloc(size);
	used = (used + 15) & ~(size_t)15;
	used += size;
	return arena + used - size;
}

/* The first allocations of a process come before constructors. */
__attribute__((constructor(101))) static void first(void)
{
	__asm__ volatile("" : : "r"(malloc(1)) : "memory");
}

#else

EXPORT int puts(const char *text);
EXPORT int puts(const char *text)
{
	int (*next)(const char *) = dlsym(RTLD_NEXT, "puts");

	interposer_calls++;
	return next(text);
}

#endif

#ifdef WRAP_DLSYM
EXPORT void *dlsym(void *handle, const char *name);
EXPORT void *dlsym(void *handle, const char *name)
{
	static void *(*next)(void *, const char *);

	if (!next)
		next = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	if (!next)
		next = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17");
	if (handle == RTLD_NEXT) /* a call from here would start at us */
		__attribute__
		((musttail)) return next(handle, name);
	return next(handle, name);
}
#endif
