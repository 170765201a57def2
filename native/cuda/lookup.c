// SPDX-License-Identifier: Apache-2.0
/* Look-ups with an explicit handle: the real answer, exchanged by the identity of the pointer. */
#include "library.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

typedef void *dlsym_fn(void *handle, const char *name);
typedef void *dlvsym_fn(void *handle, const char *name, const char *version);

/* Read by dlsym.S too. */
_Atomic(dlsym_fn *) diapause_real_dlsym;
_Atomic(dlvsym_fn *) diapause_real_dlvsym;

static void *no_lookup(void *handle, const char *name)
{
	return NULL;
}

static void *no_versioned_lookup(void *handle, const char *name, const char *version)
{
	return NULL;
}

struct lookups {
	dlsym_fn *dlsym;
	dlvsym_fn *dlvsym;
};

/* glibc before 2.34 has them in libdl. */
static bool has_lookups(const struct object *object, void *argument)
{
	struct lookups *found = argument;
	const char *soname = object_soname(object);

	if (strcmp(soname, "libc.so.6") && strcmp(soname, "libdl.so.2"))
		return false;
	return object_symbol(object, "dlsym", (void **)&found->dlsym) == SYMBOL_THERE &&
	       object_symbol(object, "dlvsym", (void **)&found->dlvsym) == SYMBOL_THERE;
}

/* Bind the real functions. An allocator may come here before constructors ran, so this takes no
 * memory and no lock of ours, and threads that race here store the same values. The usual
 * way, dlvsym(RTLD_NEXT, "dlsym", …), is closed: our own dlvsym stands in front of it. */
void diapause_find_lookup(void)
{
	struct lookups found = { 0 };

	object_each(has_lookups, &found);
	if (!found.dlsym || !found.dlvsym)
		found = (struct lookups){ no_lookup, no_versioned_lookup };
	atomic_store(&diapause_real_dlvsym, found.dlvsym);
	atomic_store(&diapause_real_dlsym, found.dlsym);
}

void *real_dlsym(void *handle, const char *name)
{
	dlsym_fn *real = atomic_load_explicit(&diapause_real_dlsym, memory_order_acquire);

	if (!real) {
		diapause_find_lookup();
		real = atomic_load(&diapause_real_dlsym);
	}
	return real(handle, name);
}

static bool is_our_handle(const void *handle)
{
	static _Atomic(void *) cached;
	struct link_map *map = atomic_load(&cached);
	Dl_info info;

	if (!map && dladdr1(diapause_entries_begin, &info, (void **)&map, RTLD_DL_LINKMAP))
		atomic_store(&cached, map);
	return map && handle == map;
}

/* An entry of ours was found. The caller may have it if the real library would have given one. */
static void *own(const char *name, void *found)
{
	size_t size = (char *)diapause_entries[1] - (char *)diapause_entries[0];
	size_t entry = ((char *)found - diapause_entries_begin) / size;

	if (diapause_entries[entry] != found || !real_load() || real_has(entry))
		return found;
	return real_dlsym(real_handle(), name); /* NULL, and dlerror tells */
}

static void *exchange(void *handle, const char *name, void *found)
{
	int entry;

	if (is_entry(found))
		return own(name, found);
	if (!found) {
		/* A name that we do not know yet: to the caller we are the real library. */
		if (!is_our_handle(handle) || !real_load())
			return NULL;
		found = real_dlsym(real_handle(), name);
	}
	/* The name decides only whether it is worth knowing the addresses of the real library. */
	if (!found || (entry_by_name(name) < 0 && !name_is_replaced_family(name)) || !real_load())
		return found;
	entry = entry_by_real(found);
	if (entry >= 0) {
		count(DIAPAUSE_COUNT_LOOKED_UP);
		return diapause_entries[entry];
	}
	if (!real_contains(found) || !name_is_replaced_family(name))
		return found;
	count(DIAPAUSE_COUNT_REFUSED);
	return real_dlsym(real_handle(), "unknown variant of a function that diapause replaces");
}

/* The real library looks up its own functions and gets them as they are. */
#define CALLED_BY_REAL() real_contains(__builtin_return_address(0))

void *diapause_dlsym_handle(void *handle, const char *name);
void *diapause_dlvsym_handle(void *handle, const char *name, const char *version);

void *diapause_dlsym_handle(void *handle, const char *name)
{
	void *found = real_dlsym(handle, name);

	return CALLED_BY_REAL() ? found : exchange(handle, name, found);
}

void *diapause_dlvsym_handle(void *handle, const char *name, const char *version)
{
	dlvsym_fn *real = atomic_load_explicit(&diapause_real_dlvsym, memory_order_acquire);
	void *found;

	if (!real) {
		diapause_find_lookup();
		real = atomic_load(&diapause_real_dlvsym);
	}
	found = real(handle, name, version);
	return CALLED_BY_REAL() || !found ? found : exchange(handle, name, found);
}
