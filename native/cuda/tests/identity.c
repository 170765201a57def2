// SPDX-License-Identifier: Apache-2.0
/* Does a real libcuda give the addresses that it exports? `identity LIBCUDA` asks its
 * cuGetProcAddress for every function of the table, in every version and for both kinds of default
 * stream, and lists the answers that are no export: those we cannot exchange. Run it by hand on a
 * machine with a driver; it needs no GPU. The last line sums up. */
#include "check.h"

#include <dlfcn.h>
#include <stdint.h>

typedef int resolver(const char *symbol, void **function, int version, uint64_t flags, int *status);

static const char *const table[] = {
#define FORWARD(name) #name,
#define GATE(name) #name,
#define REPLACE(name) #name,
#include "../symbols.def"
};

#define NAMES (int)(sizeof(table) / sizeof(table[0]))

static const char *exported_as(void *const *addresses, void *address)
{
	for (int i = 0; i < NAMES; i++)
		if (addresses[i] == address)
			return table[i];
	return NULL;
}

int main(int argc, char **argv)
{
	static void *addresses[NAMES];
	int there = 0, answers = 0, foreign = 0;
	resolver *resolve;
	void *real;

	CHECK(argc == 2, "identity LIBCUDA");
	real = dlopen(argv[1], RTLD_NOW);
	CHECK(real, "%s", dlerror());
	for (int i = 0; i < NAMES; i++)
		there += !!(addresses[i] = dlsym(real, table[i]));
	resolve = dlsym(real, "cuGetProcAddress_v2");
	CHECK(resolve, "no cuGetProcAddress_v2");
	for (int i = 0; i < NAMES; i++) {
		for (uint64_t flags = 0; flags < 3; flags++) {
			void *last = NULL;

			for (int version = 2000; version <= 13040; version += 10) {
				void *function = NULL;
				int status;

				if (resolve(table[i], &function, version, flags, &status) || !function ||
				    function == last)
					continue;
				last = function;
				answers++;
				if (exported_as(addresses, function))
					continue;
				foreign++;
				printf("%s, version %d, flags %d: %p is no export\n", table[i], version,
				       (int)flags, function);
			}
		}
	}
	printf("%d of %d functions exported, %d different answers, %d of them no export\n", there, NAMES,
	       answers, foreign);
	return foreign != 0;
}
