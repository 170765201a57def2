// SPDX-License-Identifier: Apache-2.0
/* What our library adds to a call, over the same call into the stub: time and instructions. Not a test:
 * run it by hand on a quiet machine. It pins itself to a core; ten million calls of each in rounds that are
 * shorter than a time slice and alternate; the lowest decile counts, because virtual machines scatter. */
#include "check.h"

#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <time.h>

#define CALLS 50000
#define ROUNDS 200

typedef int query(void *stream);
typedef int launch(void *f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
		   unsigned int by, unsigned int bz, unsigned int shared, void *stream, void **params,
		   void **extra);

static void call_query(void *function)
{
	__asm__ volatile("" : : "r"(((query *)function)(NULL)) : "memory");
}

static void call_launch(void *function)
{
	void *pointer = NULL;
	unsigned int number = 1;

	__asm__ volatile("" : "+r"(pointer), "+r"(number)); /* as in a program: not known beforehand */
	__asm__ volatile(""
			 :
			 : "r"(((launch *)function)(pointer, number, number, number, number, number, number,
						    number, pointer, pointer, pointer))
			 : "memory");
}

static const struct {
	const char *name;
	void (*call)(void *function);
} cases[] = {
	{ "cuDriverGetVersion", call_query }, /* forwarded; of a NULL it says 1 */
	{ "cuStreamQuery", call_query },
	{ "cuLaunchKernel", call_launch },
};

static inline __attribute__((always_inline)) double round_ns(void (*call)(void *), void *function)
{
	struct timespec start, end;

	clock_gettime(CLOCK_MONOTONIC, &start);
	for (int i = 0; i < CALLS; i++) {
		__asm__ volatile("" : "+r"(function));
		call(function);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	return ((end.tv_sec - start.tv_sec) * 1e9 + (end.tv_nsec - start.tv_nsec)) / CALLS;
}

static int by_size(const void *a, const void *b)
{
	return *(const double *)a < *(const double *)b ? -1 : 1;
}

static double low(double ns[ROUNDS])
{
	qsort(ns, ROUNDS, sizeof(*ns), by_size);
	return ns[ROUNDS / 10];
}

/* Step through one call in a child: between its first stop and its second. */
static long steps(void (*call)(void *), void *function)
{
	pid_t child = fork();
	int status;
	long n = 0;

	if (child == 0) {
		call(function);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		call(function);
		raise(SIGSTOP);
		_exit(0);
	}
	waitpid(child, &status, 0);
	do {
		ptrace(PTRACE_SINGLESTEP, child, NULL, NULL);
		waitpid(child, &status, 0);
		n++;
	} while (WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	return n;
}

static void pin(void)
{
	cpu_set_t core;

	CPU_ZERO(&core);
	CPU_SET(sched_getcpu(), &core);
	sched_setaffinity(0, sizeof(core), &core);
}

int main(void)
{
	void *real, *ours;

	setenv("DIAPAUSE_REAL_LIBCUDA", out("cuda-tests/stub/libcuda.so.1"), 1);
	ours = dlopen(out("lib/libdiapause-cuda.so"), RTLD_NOW);
	real = dlopen(out("cuda-tests/stub/libcuda.so.1"), RTLD_NOW);
	CHECK(ours && real, "%s", dlerror());
	pin();
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		void *direct = dlsym(real, cases[i].name), *through = dlsym(ours, cases[i].name);
		void (*call)(void *) = cases[i].call;
		double ns[2][ROUNDS];

		for (int j = 0; j < ROUNDS; j++) {
			ns[0][j] = round_ns(call, direct);
			ns[1][j] = round_ns(call, through);
		}
		printf("%-20s stub %.2f ns, through us %.2f ns: +%.2f ns, +%ld instructions\n", cases[i].name,
		       low(ns[0]), low(ns[1]), low(ns[1]) - low(ns[0]),
		       steps(call, through) - steps(call, direct));
	}
	return 0;
}
