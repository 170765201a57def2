// SPDX-License-Identifier: Apache-2.0
/* Calls arrive as they were made, the first one through the resolver as well as later ones; without
 * a real library they fail in a way that programs can live with. */
#include "check.h"
#include "stub.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

typedef int launch(void *f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
		   unsigned int by, unsigned int bz, unsigned int shared, void *stream, void **params,
		   void **extra);
typedef int reals(double a, double b, double c, double d, int n, double e, double f, double g, double h,
		  double i, double j);

static void check_launch(launch *launch_kernel)
{
	CHECK(launch_kernel((void *)1, 2, 3, 4, 5, 6, 7, 8, (void *)9, (void *)10, (void *)11) == 7,
	      "result");
}

static void check_reals(reals *param_setf)
{
	CHECK(param_setf(1, 2, 3, 4, 33, 5, 6, 7, 8, 9, 10) == 33, "result");
}

/* The first call of all is the one that loads. */
static void check_calls(void *handle, bool reals_first)
{
	launch *launch_kernel = dlsym(handle, "cuLaunchKernel");
	reals *param_setf = dlsym(handle, "cuParamSetf");
	struct stub *stub;
	void *real;

	for (int round = 0; round < 2; round++) {
		errno = 77;
		if (reals_first)
			check_reals(param_setf);
		check_launch(launch_kernel);
		if (!reals_first)
			check_reals(param_setf);
		CHECK(errno == 77, "errno belongs to the program");
		real = dlopen(getenv("DIAPAUSE_REAL_LIBCUDA"), RTLD_NOW | RTLD_NOLOAD);
		stub = dlsym(real, "stub");
		for (int i = 0; i < 11; i++)
			CHECK(stub->integers[i] == (unsigned int)i + 1, "round %d, argument %d", round, i);
		for (int i = 0; i < 10; i++)
			CHECK(stub->reals[i] == i + 1, "round %d, argument %d", round, i);
		memset(stub, 0, sizeof(*stub));
	}
}

static pthread_barrier_t barrier;

static void *first_call(void *handle)
{
	int (*driver_version)(int *) = dlsym(handle, "cuDriverGetVersion"), version = 0;

	pthread_barrier_wait(&barrier);
	CHECK(driver_version(&version) == 0 && version == 13000, "racing");
	return NULL;
}

static void check_race(void *handle)
{
	pthread_t threads[32];

	pthread_barrier_init(&barrier, NULL, 32);
	for (int i = 0; i < 32; i++)
		pthread_create(&threads[i], NULL, first_call, handle);
	for (int i = 0; i < 32; i++)
		pthread_join(threads[i], NULL);
}

/* 303 and not 100: nobody takes it for a machine without a GPU. */
static void check_absent(void *handle)
{
	int (*init)(unsigned int) = dlsym(handle, "cuInit");
	int (*alloc)(unsigned long long *, size_t) = dlsym(handle, "cuMemAlloc_v2");
	int (*resolver)(const char *, void **, int, uint64_t, int *) = dlsym(handle, "cuGetProcAddress_v2");
	int (*error_string)(int, const char **) = dlsym(handle, "cuGetErrorString");
	unsigned long long pointer;
	const char *text = NULL;
	void *function = NULL;

	CHECK(init(0) == 303 && init(0) == 303, "cuInit");
	CHECK(alloc(&pointer, 1) == 303, "any call");
	CHECK(resolver("cuInit", &function, 13000, 0, NULL) == 303 && !function, "the resolver");
	CHECK(error_string(303, &text) == 0 && strstr(text, "libcuda"), "what programs print");
}

static int probe(const char *how)
{
	void *handle = dlopen("libcuda.so.1", RTLD_NOW);

	check_case = how;
	CHECK(handle, "%s", dlerror());
	if (!strcmp(how, "calls"))
		check_calls(handle, false);
	else if (!strcmp(how, "launch in default scope"))
		check_calls(RTLD_DEFAULT, false);
	else if (!strcmp(how, "reals in default scope"))
		check_calls(RTLD_DEFAULT, true);
	else if (!strcmp(how, "race"))
		check_race(handle);
	else if (!strcmp(how, "absent"))
		check_absent(handle);
	return 0;
}

/* Found in the default scope, nothing is loaded before the call itself. */
static void first_call_loads(const char *how)
{
	char *preload, *real;

	CHECK(asprintf(&preload, "LD_PRELOAD=%s", out("lib/libdiapause-cuda.so")) > 0, "memory");
	CHECK(asprintf(&real, "DIAPAUSE_REAL_LIBCUDA=%s", out("cuda-tests/stub/libcuda.so.1")) > 0, "memory");
	CHECK(start(how, real, preload, NULL) == 0, "%s", how);
}

static void all(const char *how, const char *real_file)
{
	char *preload, *path, *real;

	CHECK(asprintf(&preload, "LD_PRELOAD=%s", out("lib/libdiapause-cuda.so")) > 0, "memory");
	CHECK(asprintf(&path, "LD_LIBRARY_PATH=%s", out("cuda-tests/replaced")) > 0, "memory");
	CHECK(asprintf(&real, "DIAPAUSE_REAL_LIBCUDA=%s", real_file) > 0, "memory");
	CHECK(start(how, real, path, NULL) == 0, "%s, replaced", how);
	CHECK(start(how, real, preload, NULL) == 0, "%s, preloaded", how);
}

int main(int argc, char **argv)
{
	if (argc > 2)
		return probe(argv[2]);
	all("calls", out("cuda-tests/stub/libcuda.so.1"));
	first_call_loads("launch in default scope");
	first_call_loads("reals in default scope");
	all("calls", out("cuda-tests/stub-sysv/libcuda.so.1")); /* the older kind of hash table */
	for (int i = 0; i < 10; i++)
		all("race", out("cuda-tests/stub/libcuda.so.1"));
	all("absent", "/nonexistent/libcuda.so.1");
	all("absent", "/proc/self/exe");
	all("absent", out("lib/libdiapause-cuda.so"));	      /* ourselves */
	all("absent", out("cuda-tests/replaced/another.so")); /* another build of us */
	CHECK(!chdir(out("cuda-tests/stub")), "chdir");
	all("absent", "libcuda.so.1");	 /* would find ourselves */
	all("absent", "./libcuda.so.1"); /* depends on the folder */
	return 0;
}
