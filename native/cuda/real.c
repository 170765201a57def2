// SPDX-License-Identifier: Apache-2.0
/* The real library: loading it, and its functions by address. */
#include "library.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_PATH "/.diapause/libcuda.so.1"
#define BUCKETS 4096 /* a power of two, well above ENTRIES */

enum { UNTRIED, LOADED, FAILED };

static atomic_int state;
static void *handle;
static struct object object;
static char path[4096];
static void *functions[ENTRIES];	  /* NULL: the real library lacks it */
static _Atomic uint16_t buckets[BUCKETS]; /* entry + 1 by real address */

_Static_assert(ENTRIES < BUCKETS / 2, "the hash table is sparse");
_Static_assert(ENTRIES < UINT16_MAX, "an entry fits a bucket");

static size_t bucket_of(const void *address)
{
	return ((uintptr_t)address >> 4) * 0x9e3779b97f4a7c15ull >> 52;
}

/* Threads that build the table at the same time come to the same table. */
static void remember(int entry)
{
	size_t at = bucket_of(functions[entry]);

	for (;; at = (at + 1) % BUCKETS) {
		uint16_t there = 0;

		if (atomic_compare_exchange_strong(&buckets[at], &there, entry + 1))
			return;
		if (functions[there - 1] == functions[entry])
			return;
	}
}

int entry_by_real(const void *address)
{
	size_t at = bucket_of(address);

	if (atomic_load_explicit(&state, memory_order_acquire) != LOADED)
		return -1;
	for (;; at = (at + 1) % BUCKETS) {
		int there = atomic_load_explicit(&buckets[at], memory_order_relaxed);

		if (!there)
			return -1;
		if (functions[there - 1] == address)
			return there - 1;
	}
}

bool real_contains(const void *address)
{
	return atomic_load_explicit(&state, memory_order_acquire) == LOADED &&
	       (uintptr_t)address >= object.low && (uintptr_t)address < object.high;
}

static void choose_path(void)
{
	const char *wanted = secure_getenv("DIAPAUSE_REAL_LIBCUDA");

	if (!wanted || wanted[0] != '/' || strlen(wanted) >= sizeof(path))
		wanted = DEFAULT_PATH;
	memcpy(path, wanted, strlen(wanted) + 1);
}

/* Before glibc 2.34 a look-up that fails in a namespace of dlmopen ends the process, so nothing here
 * asks the loader for what may not be there. */
static void *function_of_real(const char *name)
{
	void *address;

	switch (object_symbol(&object, name, &address)) {
	case SYMBOL_THERE:
		return address;
	case SYMBOL_INDIRECT:
		return real_dlsym(handle, name);
	default:
		return NULL;
	}
}

/* The library found there must not be this one again, nor another build of it. */
static bool open_real(void)
{
	choose_path();
	if (access(path, R_OK))
		return false;
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	return handle && object_of(((struct link_map *)handle)->l_ld, &object) &&
	       !real_defines("diapause_cuda") && real_defines("cuInit");
}

bool real_defines(const char *name)
{
	void *address;

	return object_symbol(&object, name, &address) != SYMBOL_ABSENT;
}

static void fill(bool loaded)
{
	for (int i = 0; loaded && i < ENTRIES; i++)
		functions[i] = function_of_real(entry_names[i]);
	for (int kind = ENTRY_REPLACED; kind <= ENTRY_FORWARDED;
	     kind++) /* of names for one address the first */
		for (int i = 0; i < ENTRIES; i++)
			if (functions[i] && (int)entry_kind(i) == kind)
				remember(i);
	for (int i = 0; i < ENTRIES; i++)
		atomic_store_explicit(&diapause_slots[i],
				      functions[i] ? functions[i] : absent_function(i, loaded),
				      memory_order_relaxed);
}

/* Threads that come here together all do the work, with the same result: a lock held around dlopen
 * would stand in a cycle with the loader's own, which a constructor of another library may hold
 * while it makes its first call. */
bool real_load(void)
{
	int known = atomic_load_explicit(&state, memory_order_acquire), saved = errno;

	if (known != UNTRIED)
		return known == LOADED;
	if (open_real()) {
		fill(true);
		atomic_store_explicit(&state, LOADED, memory_order_release);
	} else if (atomic_compare_exchange_strong(&state, &known, FAILED)) {
		fill(false); /* for good, unless another thread succeeds right now */
	}
	dlerror(); /* ours, not the program's */
	errno = saved;
	return atomic_load_explicit(&state, memory_order_acquire) == LOADED;
}

bool real_has(int entry)
{
	return functions[entry];
}

void *real_function(int entry)
{
	real_load();
	return atomic_load_explicit(&diapause_slots[entry], memory_order_relaxed);
}

void *real_handle(void)
{
	return handle;
}

const char *real_path(void)
{
	return path;
}

unsigned int real_functions(void)
{
	unsigned int n = 0;

	for (int i = 0; i < ENTRIES; i++)
		n += functions[i] != NULL;
	return n;
}

/* The first call through a slot ends here (entries.S). */
void *diapause_resolve(unsigned int entry);
void *diapause_resolve(unsigned int entry)
{
	return real_function(entry);
}
