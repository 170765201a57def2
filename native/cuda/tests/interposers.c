// SPDX-License-Identifier: Apache-2.0
/* The library beside other preloaded ones, in both orders: theirs find the next function, not
 * themselves, and allocators may look things up before constructors ran. */
#include "check.h"

#include <dlfcn.h>

static int probe(void)
{
	void *handle = dlopen("libcuda.so.1", RTLD_NOW);
	int *calls = dlsym(RTLD_DEFAULT, "interposer_calls");
	int (*driver_version)(int *), version;

	CHECK(handle && calls, "both are there");
	puts("once");
	free(malloc(100000));
	CHECK(*calls > 0, "the other one works");
	driver_version = dlsym(handle, "cuDriverGetVersion");
	CHECK(driver_version && driver_version(&version) == 0, "ours works");
	return 0;
}

static void order(const char *first, const char *second)
{
	char *preload, *real;
	int status;

	CHECK(asprintf(&preload, "LD_PRELOAD=%s:%s", out("%s", first), out("%s", second)) > 0, "memory");
	CHECK(asprintf(&real, "DIAPAUSE_REAL_LIBCUDA=%s", out("cuda-tests/stub/libcuda.so.1")) > 0, "memory");
	status = start("probe", preload, real, NULL);
	CHECK(status == 0, "%s: status %d", preload, status);
}

int main(int argc, char **argv)
{
	static const char *const others[] = { "cuda-tests/interposer-plain.so",
					      "cuda-tests/interposer-dlsym.so",
					      "cuda-tests/interposer-early.so" };

	if (argc > 2)
		return probe();
	for (int i = 0; i < 3; i++) {
		order("lib/libdiapause-cuda.so", others[i]);
		order(others[i], "lib/libdiapause-cuda.so");
	}
	return 0;
}
