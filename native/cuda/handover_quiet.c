// SPDX-License-Identifier: Apache-2.0
/* Closing the gates and waiting for the GPU.
 *
 * A kernel may run for ever, and no call of the driver that waits for it has a deadline: so another thread
 * waits. If it does not come back in time the gates open again, and the next request waits for it first.
 * It is there from the start, because libc allocates for a new one, and a thread that waits at a gate may
 * hold the lock of the program's malloc; and so that a checkpoint does not change the process. */
#include "memory.h"

#include "gate.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STACK (256 << 10)

enum { IDLE, DRAINING, DRAINED };

static struct {
	bool started;
	_Atomic uint32_t state; /* futex */
	uint32_t contexts;
	CUresult result;
} drain;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static void set(uint32_t state)
{
	atomic_store(&drain.state, state);
	syscall(SYS_futex, &drain.state, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void work(void)
{
	blocks_reap();
	drain.result = contexts_drain(&drain.contexts);
	set(DRAINED);
}

static void *run(void *unused)
{
	prctl(PR_SET_NAME, "diapause-drain");
	gate_exempt();
	for (;;) {
		uint32_t state = atomic_load(&drain.state);

		if (state == DRAINING)
			work();
		else
			syscall(SYS_futex, &drain.state, FUTEX_WAIT_PRIVATE, state, NULL, NULL, 0);
	}
	return unused;
}

void quiesce_prepare(void)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;
	int error;

	if (drain.started || pthread_attr_init(&attributes))
		return;
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	error = pthread_create(&thread, &attributes, run, NULL);
	if (error == EINVAL) { /* a stack too small for the TLS of this process */
		pthread_attr_setstacksize(&attributes, 8 << 20);
		error = pthread_create(&thread, &attributes, run, NULL);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	drain.started = !error;
}

static bool wait_until(uint64_t deadline)
{
	while (atomic_load(&drain.state) == DRAINING) {
		uint64_t now = now_ns(), left = now < deadline ? deadline - now : 0;
		struct timespec timeout = { left / 1000000000, left % 1000000000 };

		if (!left)
			return false;
		syscall(SYS_futex, &drain.state, FUTEX_WAIT_PRIVATE, DRAINING, &timeout, NULL, 0);
	}
	return true;
}

static enum diapause_status busy(const struct gate_busy *what, struct diapause_quiet *quiet)
{
	quiet->captures = what->captures;
	quiet->inside = what->inside;
	return DIAPAUSE_BUSY;
}

/* The gates are closed for all but callbacks, which the GPU may wait for. */
static enum diapause_status drain_all(uint64_t deadline, struct diapause_quiet *quiet,
				      struct diapause_failure *failure)
{
	bool in_time = wait_until(deadline); /* for one that came too late the last time */

	if (in_time) {
		set(DRAINING);
		if (!drain.started)
			work(); /* no memory for a thread: without a deadline */
		in_time = wait_until(deadline);
	}
	if (!in_time) {
		gate_open();
		return busy(&(struct gate_busy){ .inside = 1 }, quiet);
	}
	quiet->contexts = drain.contexts;
	if (drain.result) {
		gate_open();
		*failure = (struct diapause_failure){ .result = drain.result };
		return DIAPAUSE_GPU;
	}
	return DIAPAUSE_OK;
}

enum diapause_status quiesce(uint32_t timeout_ms, struct diapause_quiet *quiet,
			     struct diapause_failure *failure)
{
	uint64_t deadline = now_ns() + timeout_ms * 1000000ull;
	enum diapause_status status;
	struct gate_busy what;

	*quiet = (struct diapause_quiet){ 0 };
	if (gate_state() == GATE_CLOSED)
		return DIAPAUSE_OK;
	quiesce_prepare();
	if (!gate_close(deadline, &what))
		return busy(&what, quiet);
	status = drain_all(deadline, quiet, failure);
	if (status == DIAPAUSE_OK && !gate_seal(deadline, &what))
		return busy(&what, quiet);
	return status;
}

void quiesce_forget(void)
{
	drain.started = false;
	atomic_store(&drain.state, IDLE);
}
