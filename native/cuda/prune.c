// SPDX-License-Identifier: Apache-2.0
/* A program that finds this library as a file asks libc's dlsym, which no wrapper of ours sees. So
 * that it finds only what the real library has (programs take a function that is there for a
 * feature of the driver), the other names leave our symbol table. */
#include "library.h"

void prune(void)
{
	const char *names[ENTRIES];
	struct object self;
	int n = 0;

	for (int i = 0; i < ENTRIES; i++)
		if (!real_has(i))
			names[n++] = entry_names[i];
	if (object_of(diapause_entries_begin, &self))
		object_hide(&self, names, n);
}
