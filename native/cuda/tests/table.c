// SPDX-License-Identifier: Apache-2.0
/* The file exports the table and little else, and needs no more than an old glibc. */
#include "check.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>

static const char *const table[] = {
#define FORWARD(name) #name,
#define GATE(name) #name,
#define REPLACE(name) #name,
#include "../symbols.def"
	"dlsym",
	"dlvsym",
	"diapause_cuda",
};

#define NAMES (int)(sizeof(table) / sizeof(table[0]))

static const char *file;
static const ElfW(Shdr) *sections;
static int n_sections;

static const ElfW(Shdr) *section(unsigned int type)
{
	for (int i = 0; i < n_sections; i++)
		if (sections[i].sh_type == type)
			return &sections[i];
	CHECK(false, "no section of type %x", type);
	return NULL;
}

static void check_exports(void)
{
	const ElfW(Shdr) *symbols = section(SHT_DYNSYM);
	const ElfW(Sym) *symbol = (const void *)(file + symbols->sh_offset);
	const ElfW(Sym) *end = symbol + symbols->sh_size / sizeof(*symbol);
	const char *strings = file + sections[symbols->sh_link].sh_offset;
	bool seen[NAMES] = { false };

	for (; symbol < end; symbol++) {
		const char *name = strings + symbol->st_name;
		int i = 0;

		if (symbol->st_shndx == SHN_UNDEF)
			continue;
		while (i < NAMES && strcmp(table[i], name))
			i++;
		CHECK(i < NAMES, "%s is exported and not in the table", name);
		seen[i] = true;
	}
	for (int i = 0; i < NAMES; i++)
		CHECK(seen[i], "%s is not exported", table[i]);
}

static void check_needed(void)
{
	static const char *const fine[] = { "libc.so.6", "libpthread.so.0", "libdl.so.2",
					    "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1" };
	const ElfW(Shdr) *dynamic = section(SHT_DYNAMIC);
	const ElfW(Dyn) *entry = (const void *)(file + dynamic->sh_offset);
	const char *strings = file + sections[dynamic->sh_link].sh_offset;
	const char *soname = "";

	for (; entry->d_tag != DT_NULL; entry++) {
		bool known = false;

		if (entry->d_tag == DT_SONAME)
			soname = strings + entry->d_un.d_val;
		if (entry->d_tag != DT_NEEDED)
			continue;
		for (int i = 0; i < 5; i++)
			known |= !strcmp(strings + entry->d_un.d_val, fine[i]);
		CHECK(known, "needs %s", strings + entry->d_un.d_val);
	}
	CHECK(!strcmp(soname, "libcuda.so.1"), "soname %s", soname);
}

static void check_versions(void)
{
	const ElfW(Shdr) *versions = section(SHT_GNU_verneed);
	const char *strings = file + sections[versions->sh_link].sh_offset;
	const ElfW(Verneed) *need = (const void *)(file + versions->sh_offset);

	for (;; need = (const void *)((const char *)need + need->vn_next)) {
		const ElfW(Vernaux) *aux = (const void *)((const char *)need + need->vn_aux);

		for (;; aux = (const void *)((const char *)aux + aux->vna_next)) {
			const char *name = strings + aux->vna_name;
			int minor = 0;

			CHECK(sscanf(name, "GLIBC_2.%d", &minor) == 1 && minor <= 17, "needs %s", name);
			if (!aux->vna_next)
				break;
		}
		if (!need->vn_next)
			break;
	}
}

/* Look-ups by name search it in halves. */
static void check_order(void)
{
	for (int i = 1; i < NAMES - 3; i++)
		CHECK(strcmp(table[i - 1], table[i]) < 0, "%s stands before %s", table[i - 1], table[i]);
}

int main(int argc, char **argv)
{
	const char *path = argc > 2 ? argv[2] : out("lib/libdiapause-cuda.so");
	int fd = open(path, O_RDONLY);
	const ElfW(Ehdr) *header;
	struct stat stat;

	check_case = path;
	CHECK(fd >= 0 && !fstat(fd, &stat), "open");
	file = mmap(NULL, stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(file != MAP_FAILED, "map");
	header = (const void *)file;
	sections = (const void *)(file + header->e_shoff);
	n_sections = header->e_shnum;
	check_order();
	check_exports();
	check_needed();
	check_versions();
	return 0;
}
