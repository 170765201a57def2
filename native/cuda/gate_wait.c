// SPDX-License-Identifier: Apache-2.0
/* What the gate asks of the kernel. */
#include "gate.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PARK_NS 50000000      /* a wake that got lost, for example over a restore, costs no more than this */
#define SHORTEST_NAP_NS 10000 /* a short call is over by then */
#define LONGEST_NAP_NS 1000000

/* linux/membarrier.h is younger than the libc that we build against. */
#define MEMBARRIER_GLOBAL 1
#define MEMBARRIER_PRIVATE_EXPEDITED 8
#define MEMBARRIER_REGISTER_PRIVATE_EXPEDITED 16

/* The word lies in a memfd, so this is the kind of futex that is shared. */
void gate_park(_Atomic uint32_t *word, uint32_t value)
{
	struct timespec timeout = { .tv_nsec = PARK_NS };

	syscall(SYS_futex, word, FUTEX_WAIT, value, &timeout, NULL, 0);
}

void gate_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static bool membarrier(int command)
{
	return !syscall(SYS_membarrier, command, 0, 0);
}

bool gate_barrier_prepare(void)
{
	return membarrier(MEMBARRIER_REGISTER_PRIVATE_EXPEDITED) && gate_barrier();
}

/* CRIU before 4.0 does not restore the registration. */
bool gate_barrier(void)
{
	if (membarrier(MEMBARRIER_PRIVATE_EXPEDITED))
		return true;
	return (membarrier(MEMBARRIER_REGISTER_PRIVATE_EXPEDITED) &&
		membarrier(MEMBARRIER_PRIVATE_EXPEDITED)) ||
	       membarrier(MEMBARRIER_GLOBAL);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

bool gate_nap(unsigned int *naps, uint64_t deadline_ns)
{
	struct timespec nap = { .tv_nsec = SHORTEST_NAP_NS << (*naps < 7 ? *naps : 7) };

	if (now_ns() >= deadline_ns)
		return false;
	if (nap.tv_nsec > LONGEST_NAP_NS)
		nap.tv_nsec = LONGEST_NAP_NS;
	++*naps;
	nanosleep(&nap, NULL);
	return true;
}

bool gate_thread_lives(int32_t tid)
{
	return !syscall(SYS_tgkill, getpid(), tid, 0) || errno != ESRCH;
}
