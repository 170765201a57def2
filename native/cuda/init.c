// SPDX-License-Identifier: Apache-2.0
/* The two moments at which the library does something by itself: it is loaded, CUDA is initialised. */
#include "library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

/* Marks a build of this library, so that none takes another for the real one. */
__attribute__((visibility("default"))) const char diapause_cuda[] = "1";

/* Is `word` one of those in `list`, separated as ld.so(8) says? */
static bool listed(const char *list, const char *word)
{
	size_t length = strlen(word);

	while (list && *list && length) {
		size_t n = strcspn(list, ": ");

		if (n == length && !memcmp(list, word, n))
			return true;
		list += n + (list[n] != '\0');
	}
	return false;
}

static bool preloaded(void)
{
	struct link_map *map;
	Dl_info info;

	return dladdr1(diapause_cuda, &info, (void **)&map, RTLD_DL_LINKMAP) &&
	       listed(getenv("LD_PRELOAD"), map->l_name);
}

/* Who loads libcuda wants CUDA: the real library follows at once, and our symbol table becomes like
 * its. Preloaded, we are in every process, most of which never ask for CUDA: there the first call
 * loads, and our dlsym, which then stands before libc's, gives the right answers. */
__attribute__((constructor)) static void loaded(void)
{
	if (!preloaded() && real_load())
		prune();
}

CUresult replaced_cuInit(unsigned int flags);
CUresult replaced_cuInit(unsigned int flags)
{
	CUresult (*real)(unsigned int) = real_function(ENTRY_cuInit);
	CUresult result = real(flags);

	if (result == CUDA_SUCCESS) {
		control_start();
		count(DIAPAUSE_COUNT_INIT);
	}
	return result;
}
