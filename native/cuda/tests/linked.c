// SPDX-License-Identifier: Apache-2.0
/* A program that was linked with libcuda: the library stands in its place and its dlsym serves the
 * whole process. */
#include "check.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>

int cuInit(unsigned int flags);
int cuDriverGetVersion(int *version);
int cuMemGetInfo_v2(size_t *free, size_t *total);
__attribute__((weak)) int cuMemAlloc_v2(unsigned long long *pointer, size_t size);

/* More of it than a small thread stack holds. */
static volatile __thread char tls[1 << 20];

static int before_main = -1;

__attribute__((constructor)) static void early(void)
{
	int version;

	before_main = cuDriverGetVersion(&version);
}

int main(int argc, char **argv)
{
	size_t free = 0, total = 0;
	void *real, *libc, *handle;
	int version = 0;
	Dl_info info;

	if (argc < 3) {
		char *path, *name;

		CHECK(asprintf(&path, "LD_LIBRARY_PATH=%s", out("cuda-tests/replaced")) > 0, "memory");
		CHECK(asprintf(&name, "DIAPAUSE_REAL_LIBCUDA=%s", out("cuda-tests/stub/libcuda.so.1")) > 0,
		      "memory");
		CHECK(start("again", path, name, NULL) == 0, "lazy binding");
		CHECK(start("again", path, name, "LD_BIND_NOW=1", NULL) == 0, "eager binding");
		return 0;
	}
	CHECK(dladdr(dlsym, &info) && strstr(info.dli_fname, "replaced/"), "our dlsym stands first: %s",
	      info.dli_fname);
	CHECK(before_main == 0, "a call from a constructor");
	tls[sizeof(tls) - 1] = 1;
	CHECK(cuInit(0) == 0, "cuInit");
	CHECK(!access("/proc/self/fd/902", F_OK), "a control channel, with much thread-local storage");
	CHECK(cuDriverGetVersion(&version) == 0 && version == 13000, "version");
	CHECK(cuMemGetInfo_v2(&free, &total) == 0 && free == 1 && total == 2, "arguments");
	if (cuMemAlloc_v2) /* bound before the library could know what the real one has */
		CHECK(cuMemAlloc_v2(NULL, 1) == 801, "not supported, and the process lives");

	real = dlopen(getenv("DIAPAUSE_REAL_LIBCUDA"), RTLD_NOW);
	libc = dlopen("libc.so.6", RTLD_NOW);
	handle = dlopen("libcuda.so.1", RTLD_NOW);
	CHECK(handle != real, "two libraries of one name");
	CHECK(dlsym(handle, "cuInit") == dlsym(real, "cuInit"), "by identity");
	CHECK(dlsym(RTLD_DEFAULT, "cuInit") == dlsym(real, "cuInit"), "default scope");
	CHECK(!dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"), "missing in the default scope");
	CHECK(!dlsym(handle, "cuMemAlloc_v2") && dlerror(), "missing");
	CHECK(dlsym(handle, "cuOfTomorrow"), "a name of a newer driver");
	CHECK(dlsym(RTLD_NEXT, "malloc") == dlsym(libc, "malloc"), "next");
	CHECK(dlvsym(libc, "malloc", "GLIBC_2.2.5") || dlvsym(libc, "malloc", "GLIBC_2.17"), "dlvsym");
	return 0;
}
