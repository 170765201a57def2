/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of libdiapause-cuda.so and what they give each other:
 *
 *   entries.S    the exported functions and their slots
 *   dlsym.S      dlsym and dlvsym; lookup.c: their answers
 *   real.c       loads the real library, fills the slots, knows entries by real address
 *   absent.c     what a call gets that the real library cannot serve
 *   prune.c      takes entries that the real library lacks out of our symbol table
 *   resolver.c   cuGetProcAddress
 *   gate*.c      holds calls back (gate.h)
 *   memory*.c slab.c vmm*.c attributes.c handover*.c
 *                device memory, and taking it away (memory.h)
 *   init.c       constructor, cuInit
 *   control.c    makes the control channel; serve.c answers on it
 *   elf.c        symbols of loaded objects
 */
#ifndef DIAPAUSE_LIBRARY_H
#define DIAPAUSE_LIBRARY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_abi.h"
#include "diapause_control.h"

enum entry {
#define FORWARD(name) ENTRY_##name,
#define GATE(name) ENTRY_##name,
#define REPLACE(name) ENTRY_##name,
#include "symbols.def"
#undef FORWARD
#undef GATE
#undef REPLACE
	ENTRIES
};

/* entries.S */
extern char diapause_entries_begin[], diapause_entries_end[];
extern void *const diapause_entries[ENTRIES]; /* our address of every function */
extern _Atomic(void *) diapause_slots[ENTRIES]
	__attribute__((visibility("hidden"))); /* where calls go: real, absent, or not loaded yet */

static inline bool is_entry(const void *address)
{
	return (char *)address >= diapause_entries_begin && (char *)address < diapause_entries_end;
}

/* table.c */
extern const char *const entry_names[ENTRIES];
int entry_by_name(const char *name); /* -1: not in the table */
enum entry_kind { ENTRY_REPLACED, ENTRY_GATED, ENTRY_FORWARDED };
enum entry_kind entry_kind(int entry);
bool name_is_replaced_family(const char *name);

/* elf.c */
struct object {
	uintptr_t base;
	uintptr_t low, high; /* its bounds */
	const void *dynamic;
	const void *headers; /* ElfW(Phdr)[] */
	int n_headers;
};
void object_each(bool (*stop)(const struct object *object, void *argument), void *argument);
bool object_of(const void *address, struct object *object);
const char *object_soname(const struct object *object);
enum symbol_kind { SYMBOL_ABSENT, SYMBOL_THERE, SYMBOL_INDIRECT };
enum symbol_kind object_symbol(const struct object *object, const char *name, void **address);
bool object_hide(const struct object *object, const char *const *names, int n);
void object_build_id(const struct object *object, uint8_t id[20]);

/* lookup.c: the real functions, bound without taking a lock or memory */
void *real_dlsym(void *handle, const char *name);
void diapause_find_lookup(void);

/* real.c */
bool real_load(void);			/* once; false: there is no real library */
bool real_has(int entry);		/* only after real_load() */
void *real_function(int entry);		/* never NULL; loads */
void *real_handle(void);		/* NULL: there is none */
int entry_by_real(const void *address); /* -1: not a function of the real library */
bool real_contains(const void *address);
bool real_defines(const char *name);
const char *real_path(void);
unsigned int real_functions(void);

/* absent.c */
void *absent_function(int entry, bool loaded);

/* prune.c */
void prune(void);

/* inherit.c: in the child after a fork */
void inherit_no_gpu(void);

/* control.c */
void control_start(void);
extern _Atomic(_Atomic uint64_t *) control_counters;

static inline void count(enum diapause_counter counter)
{
	_Atomic uint64_t *counters = atomic_load_explicit(&control_counters, memory_order_relaxed);

	atomic_fetch_add_explicit(&counters[counter], 1, memory_order_relaxed);
}

/* serve.c */
struct channel {
	int own; /* our end */
	struct diapause_page *page;
	struct diapause_hello self;
};
bool serve_mark(int fd);
void serve(const struct channel *channel);

#endif
