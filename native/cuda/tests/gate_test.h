/* SPDX-License-Identifier: Apache-2.0
 *
 * For the tests of the gate: they have the library's objects inside and call its entries, which lead to the
 * stub, where a function of the test decides what happens.
 */
#ifndef GATE_TEST_H
#define GATE_TEST_H

#include "../gate.h"
#include "check.h"
#include "stub.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>

int cuCtxSynchronize(void);
int cuEventQuery(void *event);
int cuStreamSynchronize(void *stream);

#define SECOND 1000000000ull
#define LONG (20 * SECOND)  /* for what has to happen */
#define SHORT (SECOND / 20) /* for what must not */

static inline uint64_t in(uint64_t ns)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * SECOND + now.tv_nsec + ns;
}

static inline void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
}

#define WAIT_FOR(condition)                                                             \
	do {                                                                            \
		uint64_t deadline_ = in(LONG);                                          \
		while (!(condition)) {                                                  \
			CHECK(in(0) < deadline_, "waited in vain for: %s", #condition); \
			nap();                                                          \
		}                                                                       \
	} while (0)

/* Does not become true for a while. */
#define STAYS_FALSE(condition)                                            \
	do {                                                              \
		uint64_t deadline_ = in(SHORT);                           \
		while (in(0) < deadline_) {                               \
			CHECK(!(condition), "too early: %s", #condition); \
			nap();                                            \
		}                                                         \
	} while (0)

/* The library loads the real one before main: begin again with a stub for it. */
static inline struct stub *stub_says(char **argv, stub_call *call)
{
	char *path = out("cuda-tests/stub-calls/libcuda.so.1");
	const char *have = getenv("DIAPAUSE_REAL_LIBCUDA");
	struct stub *found;
	void *real;

	if (!have || strcmp(have, path)) {
		setenv("DIAPAUSE_REAL_LIBCUDA", path, 1);
		execv("/proc/self/exe", argv);
	}
	real = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
	CHECK(real, "%s", dlerror());
	found = dlsym(real, "stub");
	CHECK(found, "%s", dlerror());
	__atomic_store_n(&found->call, call, __ATOMIC_RELEASE);
	return found;
}

static inline pthread_t begin(void *(*run)(void *), void *argument)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, run, argument), "no thread");
	return thread;
}

/* Closed and sealed, and a failure to is one of the test. */
static inline void must_close(void)
{
	struct gate_busy busy;

	CHECK(gate_close(in(LONG), &busy), "%u captures, %u inside", busy.captures, busy.inside);
	CHECK(gate_seal(in(LONG), &busy), "%u captures, %u inside", busy.captures, busy.inside);
}

#endif
