// SPDX-License-Identifier: Apache-2.0
/* What a forwarded call costs over the same call into the stub. Not a test: run it by hand, pinned to
 * a core. Rounds alternate and the lowest counts, because virtual machines scatter. */
#include "check.h"

#include <dlfcn.h>
#include <time.h>

typedef int function(void *stream);

#define CALLS 10000000
#define ROUNDS 15

static double round_ns(function *volatile called)
{
	struct timespec start, end;
	function *f = called;

	clock_gettime(CLOCK_MONOTONIC, &start);
	for (int i = 0; i < CALLS; i++)
		__asm__ volatile("" : : "r"(f(NULL)) : "memory");
	clock_gettime(CLOCK_MONOTONIC, &end);
	return ((end.tv_sec - start.tv_sec) * 1e9 + (end.tv_nsec - start.tv_nsec)) / CALLS;
}

int main(void)
{
	double direct = 1e9, forwarded = 1e9;
	void *real, *ours;

	setenv("DIAPAUSE_REAL_LIBCUDA", out("cuda-tests/stub/libcuda.so.1"), 1);
	ours = dlopen(out("lib/libdiapause-cuda.so"), RTLD_NOW);
	real = dlopen(out("cuda-tests/stub/libcuda.so.1"), RTLD_NOW);
	CHECK(ours && real, "%s", dlerror());
	for (int i = 0; i < ROUNDS; i++) {
		double a = round_ns(dlsym(real, "cuStreamQuery")), b = round_ns(dlsym(ours, "cuStreamQuery"));

		direct = a < direct ? a : direct;
		forwarded = b < forwarded ? b : forwarded;
	}
	printf("stub %.2f ns, forwarded %.2f ns: +%.2f ns a call\n", direct, forwarded, forwarded - direct);
	return 0;
}
