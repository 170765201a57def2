// SPDX-License-Identifier: Apache-2.0
/* Every way in which a program gets hold of libcuda leads to the library, and through it to the real
 * one; look-ups answer what the real library would, with entries in place of its functions. */
#include "check.h"
#include "stub.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>

typedef int resolver_v1(const char *symbol, void **function, int version, uint64_t flags);
typedef int resolver_v2(const char *symbol, void **function, int version, uint64_t flags, int *status);

static bool lies_in(void *address, const char *file)
{
	struct stat a, b;
	Dl_info info;

	return dladdr(address, &info) && !stat(info.dli_fname, &a) && !stat(file, &b) &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static bool ours(void *address)
{
	return lies_in(address, out("lib/libdiapause-cuda.so"));
}

/* dlsym as this program has it: libc's, or ours when the library is preloaded or linked. */
static void check_resolver(void *handle)
{
	resolver_v2 *v2 = dlsym(handle, "cuGetProcAddress_v2");
	resolver_v1 *v1 = dlsym(handle, "cuGetProcAddress");
	void *function = &function;
	int status = -1;

	CHECK(ours(v1) && ours(v2), "the resolvers");
	CHECK(v2("cuInit", &function, 13000, 0, NULL) == 0 && ours(function), "no status wanted");
	CHECK(function == dlsym(handle, "cuInit"), "one entry for one function");
	CHECK(v1("cuInit", &function, 2000, 0) == 0 && ours(function), "four arguments");
	CHECK(v2("cuStreamQuery", &function, 7000, 1, &status) == 0 && status == 0, "legacy stream");
	CHECK(function == dlsym(handle, "cuStreamQuery"), "legacy stream");
	CHECK(v2("cuStreamQuery", &function, 7000, 2, &status) == 0, "per-thread stream");
	CHECK(function == dlsym(handle, "cuStreamQuery_ptsz"), "per-thread stream");
	CHECK(((int (*)(void *))function)(NULL) == 601, "the call arrives");
	CHECK(v2("cuNothing", &function, 13000, 0, &status) == 500 && !function && status == 1, "unknown");
	CHECK(v2(NULL, &function, 13000, 0, &status) == 1, "the real one's error");
	CHECK(v2("cuInit", NULL, 13000, 0, &status) == 1, "the real one's error");

	/* gpu-checkpoint reports 13 and 80: the resolver asked for itself, three levels deep */
	for (int depth = 0; depth < 3; depth++) {
		CHECK(v1("cuGetProcAddress", (void **)&v1, 11030, 0) == 0 && ours(v1), "depth %d", depth);
		CHECK(v2("cuGetProcAddress", (void **)&v2, 12000, 0, NULL) == 0 && ours(v2), "depth %d",
		      depth);
		CHECK((void *)v1 != (void *)v2, "each with its own ABI");
	}
	CHECK(v1("cuGetProcAddress", (void **)&v2, 12000, 0) == 0 && ours(v2), "from the old one to the new");
	CHECK(v2("cuInit", &function, 13000, 0, &status) == 0 && ours(function), "after the chain");

	/* A tracked function in a variant that nobody knows is not found; others pass. */
	CHECK(v2("cuInit", &function, STUB_LATER, 0, &status) == 500 && !function && status == 1, "refused");
	CHECK(v2("cuInit", &function, STUB_LATER, 0, NULL) == 500 && !function, "refused without a status");
	CHECK(v1("cuInit", &function, STUB_LATER, 0) == 500 && !function, "refused");
	CHECK(v2("cuStreamQuery", &function, STUB_LATER, 0, &status) == 0 && function, "internal function");
	CHECK(!ours(function), "what is not exported passes as it is");
}

static void check_handle(void *handle)
{
	struct stub *stub;
	void *real;
	int version = 0;

	CHECK(handle, "%s", dlerror());
	CHECK(ours(dlsym(handle, "cuInit")), "a replaced function");
	CHECK(ours(dlsym(handle, "cuMemGetInfo_v2")), "a forwarded function");
	dlerror();
	CHECK(!dlsym(handle, "cuMemAlloc_v2"), "in the table, but not in the real library");
	CHECK(strstr(dlerror() ?: "", "cuMemAlloc_v2"), "dlerror tells the name");
	CHECK(((int (*)(int *))dlsym(handle, "cuDriverGetVersion"))(&version) == 0 && version == 13000,
	      "call");
	check_resolver(handle);

	real = dlopen(getenv("DIAPAUSE_REAL_LIBCUDA"), RTLD_NOW | RTLD_NOLOAD);
	if (!real)
		return; /* another namespace */
	stub = dlsym(real, "stub");
	CHECK(((int (*)(unsigned int))dlsym(handle, "cuInit"))(0) == 0, "cuInit");
	CHECK(stub->calls == 1, "arrived %d times", stub->calls);
	CHECK(((int (*)(size_t *, size_t *))dlsym(handle, "cuMemGetInfo_v2"))(NULL, NULL) == 0, "report 2");
}

/* Only where our own dlsym answers. */
static void check_wrapper(void *handle)
{
	void *real = dlopen(getenv("DIAPAUSE_REAL_LIBCUDA"), RTLD_NOW | RTLD_LOCAL);
	void *libc = dlopen("libc.so.6", RTLD_NOW);

	CHECK(ours(dlsym), "our dlsym stands first");
	CHECK(ours(dlsym(real, "cuInit")), "the real library opened by its path");
	CHECK(dlsym(real, "cuInit") == dlsym(handle, "cuInit"), "one entry for one function");
	CHECK(dlvsym(libc, "malloc", "GLIBC_2.2.5") || dlvsym(libc, "malloc", "GLIBC_2.17"), "dlvsym");
	CHECK(!ours(dlsym(real, "stub")) && dlsym(real, "stub"), "data passes");
	CHECK(lies_in(dlsym(handle, "cuOfTomorrow"), getenv("DIAPAUSE_REAL_LIBCUDA")),
	      "a name of a newer driver");
	dlerror();
	CHECK(!dlsym(real, "cuInit_v9") && dlerror(), "an unknown variant of a replaced function");
	CHECK(!dlsym(handle, "cuInit_v9") && dlerror(), "an unknown variant of a replaced function");
	CHECK(!dlsym(real, "cuMemAlloc_v2") && dlerror(), "missing");
	CHECK(dlsym(RTLD_DEFAULT, "malloc") == dlsym(libc, "malloc"), "default");
	CHECK(dlsym(RTLD_NEXT, "malloc") == dlsym(libc, "malloc"), "next");
	CHECK(!dlsym(libc, "no_such_function") && strstr(dlerror() ?: "", "no_such_function"), "dlerror");
	CHECK(ours(dlsym(RTLD_DEFAULT, "cuInit")), "default scope");
}

/* In the process that was started for one row of the table. */
static int probe(const char *how)
{
	void *handle;

	check_case = how;
	if (!strcmp(how, "soname")) {
		check_handle(dlopen("libcuda.so.1", RTLD_NOW));
	} else if (!strcmp(how, "unversioned")) {
		check_handle(dlopen("libcuda.so", RTLD_NOW));
	} else if (!strcmp(how, "absolute")) {
		check_handle(dlopen(out("cuda-tests/replaced/libcuda.so.580.00"), RTLD_NOW));
	} else if (!strcmp(how, "two names")) {
		check_handle(dlopen(out("cuda-tests/replaced/libcuda.so.580.00"), RTLD_NOW));
		CHECK(dlopen(out("cuda-tests/replaced/libcuda.so.580.00"), RTLD_NOW) ==
			      dlopen("libcuda.so.1", RTLD_NOW),
		      "one library");
	} else if (!strcmp(how, "namespace")) {
		check_handle(dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW));
	} else if (!strcmp(how, "global")) {
		handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
		check_handle(handle);
		CHECK(dlsym(RTLD_DEFAULT, "cuInit") == dlsym(handle, "cuInit"), "default scope");
		CHECK(!dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"), "missing in the default scope");
	} else if (!strcmp(how, "closed")) {
		handle = dlopen("libcuda.so.1", RTLD_NOW);
		((int (*)(unsigned int))dlsym(handle, "cuInit"))(0);
		dlclose(handle);
		usleep(1000);
		handle = dlopen("libcuda.so.1", RTLD_NOW);
		CHECK(handle && ours(dlsym(handle, "cuInit")), "again");
	} else if (!strcmp(how, "preload")) {
		/* Nothing was loaded for a process that did not ask yet. */
		CHECK(!dlopen(getenv("DIAPAUSE_REAL_LIBCUDA"), RTLD_NOW | RTLD_NOLOAD), "too early");
		handle = dlopen("libcuda.so.1", RTLD_NOW);
		check_handle(handle);
		check_wrapper(handle);
	} else if (!strcmp(how, "preload, file first")) {
		handle = dlopen(getenv("DIAPAUSE_REAL_LIBCUDA"), RTLD_NOW);
		CHECK(handle && ours(dlsym(handle, "cuInit")), "identity, before the first call");
		check_wrapper(dlopen("libcuda.so.1", RTLD_NOW));
	} else {
		return 2;
	}
	return 0;
}

static void row(const char *how, char *preload)
{
	char *path, *real;
	int status;

	CHECK(asprintf(&path, "LD_LIBRARY_PATH=%s", out("cuda-tests/replaced")) > 0, "memory");
	CHECK(asprintf(&real, "DIAPAUSE_REAL_LIBCUDA=%s", out("cuda-tests/stub/libcuda.so.1")) > 0, "memory");
	status = start(how, real, preload ? preload : path, NULL);
	CHECK(status == 0, "%s: status %d", how, status);
}

int main(int argc, char **argv)
{
	char *preload;

	if (argc > 2)
		return probe(argv[2]);
	CHECK(asprintf(&preload, "LD_PRELOAD=%s", out("lib/libdiapause-cuda.so")) > 0, "memory");
	row("soname", NULL);
	row("unversioned", NULL);
	row("absolute", NULL);
	row("two names", NULL);
	row("namespace", NULL);
	row("global", NULL);
	row("closed", NULL);
	row("preload", preload);
	row("preload, file first", preload);
	return 0;
}
