// SPDX-License-Identifier: Apache-2.0
/* Symbols of loaded objects, read from their own tables: no lock, no memory, no dlsym. */
#include "library.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct tables {
	ElfW(Sym) *symbols;
	const char *strings;
	const uint32_t *gnu_hash;
	const uint32_t *hash; /* DT_HASH, which a library may have in its place */
	const char *soname;
};

/* glibc has made these pointers absolute where the segment is writable; others leave offsets. */
static uintptr_t absolute(const struct object *object, ElfW(Addr) value)
{
	return value < object->base ? object->base + value : value;
}

static bool read_tables(const struct object *object, struct tables *tables)
{
	ElfW(Addr) soname = 0;

	*tables = (struct tables){ 0 };
	for (const ElfW(Dyn) *d = object->dynamic; d && d->d_tag != DT_NULL; d++) {
		uintptr_t at = absolute(object, d->d_un.d_ptr);

		if (d->d_tag == DT_SYMTAB)
			tables->symbols = (ElfW(Sym) *)at;
		else if (d->d_tag == DT_STRTAB)
			tables->strings = (const char *)at;
		else if (d->d_tag == DT_GNU_HASH)
			tables->gnu_hash = (const uint32_t *)at;
		else if (d->d_tag == DT_HASH)
			tables->hash = (const uint32_t *)at;
		else if (d->d_tag == DT_SONAME)
			soname = d->d_un.d_val;
	}
	if (!tables->symbols || !tables->strings)
		return false;
	tables->soname = soname ? tables->strings + soname : "";
	return true;
}

static uint32_t gnu_hash(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

static uint32_t sysv_hash(const char *name)
{
	uint32_t hash = 0;

	for (; *name; name++) {
		hash = (hash << 4) + (unsigned char)*name;
		hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
	}
	return hash;
}

static bool defines(const struct tables *tables, const ElfW(Sym) *symbol, const char *name)
{
	return symbol->st_shndx != SHN_UNDEF && symbol->st_value &&
	       !strcmp(tables->strings + symbol->st_name, name);
}

static ElfW(Sym) *find_gnu(const struct tables *tables, const char *name)
{
	uint32_t n_buckets = tables->gnu_hash[0], first = tables->gnu_hash[1], words = tables->gnu_hash[2];
	const uint32_t *buckets = tables->gnu_hash + 4 + words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
	const uint32_t *chain = buckets + n_buckets;
	uint32_t hash = gnu_hash(name), at = n_buckets ? buckets[hash % n_buckets] : 0;

	if (at < first)
		return NULL;
	for (;; at++) {
		uint32_t seen = chain[at - first];

		if ((seen | 1) == (hash | 1) && defines(tables, &tables->symbols[at], name))
			return &tables->symbols[at];
		if (seen & 1)
			return NULL;
	}
}

static ElfW(Sym) *find_sysv(const struct tables *tables, const char *name)
{
	uint32_t n_buckets = tables->hash[0];
	const uint32_t *buckets = tables->hash + 2, *chain = buckets + n_buckets;

	for (uint32_t at = n_buckets ? buckets[sysv_hash(name) % n_buckets] : 0; at; at = chain[at])
		if (defines(tables, &tables->symbols[at], name))
			return &tables->symbols[at];
	return NULL;
}

static ElfW(Sym) *find(const struct tables *tables, const char *name)
{
	if (tables->gnu_hash)
		return find_gnu(tables, name);
	return tables->hash ? find_sysv(tables, name) : NULL;
}

const char *object_soname(const struct object *object)
{
	struct tables tables;

	return read_tables(object, &tables) ? tables.soname : "";
}

/* What dlsym would find in this object alone. An IFUNC is not called: whoever needs one asks dlsym. */
enum symbol_kind object_symbol(const struct object *object, const char *name, void **address)
{
	struct tables tables;
	const ElfW(Sym) *symbol;

	if (!read_tables(object, &tables) || !(symbol = find(&tables, name)))
		return SYMBOL_ABSENT;
	*address = (void *)(object->base + symbol->st_value);
	return (symbol->st_info & 0xf) == STT_GNU_IFUNC ? SYMBOL_INDIRECT : SYMBOL_THERE;
}

/* Make look-ups in `object` miss these names: a symbol without a value is none to the loader. The
 * table lies in a segment that is only read (lld), so it is writable for a moment and then as before. */
bool object_hide(const struct object *object, const char *const *names, int n)
{
	uintptr_t page = sysconf(_SC_PAGESIZE), low = UINTPTR_MAX, high = 0;
	struct tables tables;

	if (!read_tables(object, &tables))
		return false;
	for (int i = 0; i < n; i++) {
		const ElfW(Sym) *symbol = find(&tables, names[i]);

		if (!symbol)
			continue;
		low = (uintptr_t)symbol < low ? (uintptr_t)symbol : low;
		high = (uintptr_t)(symbol + 1) > high ? (uintptr_t)(symbol + 1) : high;
	}
	if (low >= high)
		return true;
	low &= -page;
	high = (high + page - 1) & -page;
	if (mprotect((void *)low, high - low, PROT_READ | PROT_WRITE))
		return false;
	for (int i = 0; i < n; i++) {
		ElfW(Sym) *symbol = find(&tables, names[i]);

		if (symbol)
			__atomic_store_n(&symbol->st_value, 0, __ATOMIC_RELAXED);
	}
	mprotect((void *)low, high - low, PROT_READ);
	return true;
}

void object_build_id(const struct object *object, uint8_t id[20])
{
	const ElfW(Phdr) *header = object->headers, *end = header + object->n_headers;

	memset(id, 0, 20);
	for (; header < end; header++) {
		const char *at = (const char *)object->base + header->p_vaddr, *stop = at + header->p_memsz;

		if (header->p_type != PT_NOTE)
			continue;
		while (stop - at > (ptrdiff_t)sizeof(ElfW(Nhdr))) {
			const ElfW(Nhdr) *note = (const void *)at;
			const char *name = (const char *)(note + 1);
			const char *value = name + ((note->n_namesz + 3) & ~3u);

			if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
			    !memcmp(name, "GNU", 4)) {
				memcpy(id, value, note->n_descsz < 20 ? note->n_descsz : 20);
				return;
			}
			at = value + ((note->n_descsz + 3) & ~3u);
		}
	}
}

struct each {
	bool (*stop)(const struct object *object, void *argument);
	void *argument;
};

static int visit(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct each *each = argument;
	struct object object = {
		.base = info->dlpi_addr,
		.low = UINTPTR_MAX,
		.headers = info->dlpi_phdr,
		.n_headers = info->dlpi_phnum,
	};

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + header->p_vaddr;

		if (header->p_type == PT_DYNAMIC)
			object.dynamic = (const void *)start;
		if (header->p_type != PT_LOAD)
			continue;
		object.low = start < object.low ? start : object.low;
		object.high = start + header->p_memsz > object.high ? start + header->p_memsz : object.high;
	}
	return each->stop(&object, each->argument);
}

/* The loaded objects of the caller's namespace, in link order, until `stop` says so. */
void object_each(bool (*stop)(const struct object *object, void *argument), void *argument)
{
	struct each each = { stop, argument };

	dl_iterate_phdr(visit, &each);
}

struct at {
	uintptr_t address;
	struct object *object;
	bool found;
};

static bool is_at(const struct object *object, void *argument)
{
	struct at *at = argument;

	if (at->address < object->low || at->address >= object->high)
		return false;
	*at->object = *object;
	return at->found = true;
}

/* The loaded object that `address` lies in. */
bool object_of(const void *address, struct object *object)
{
	struct at at = { .address = (uintptr_t)address, .object = object };

	object_each(is_at, &at);
	return at.found;
}
