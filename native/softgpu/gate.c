// SPDX-License-Identifier: Apache-2.0
/* What every call of the driver API passes: closed from Lock to Unlock.
 *
 * No mutex: a thread may be held still by ptrace anywhere in here, and Unlock must work then. */
#include "softgpu.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

atomic_bool driver_ready;
atomic_long work_pending;

static atomic_int closed; /* futex */
static atomic_int inside;
static atomic_bool failed, forked;
static __thread unsigned depth;
static __thread bool callback;

static void go_inside(void)
{
	for (;;) {
		atomic_fetch_add(&inside, 1);
		if (!atomic_load(&closed))
			return;
		atomic_fetch_sub(&inside, 1);
		syscall(SYS_futex, &closed, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
	}
}

/* A call may come from another call, or from a host function that the device runs. */
struct pass gate_enter(void)
{
	struct pass pass = { .result = gate_peek() };

	if (pass.result)
		return pass;
	if (depth++ == 0)
		go_inside();
	pass.entered = true;
	if (atomic_load(&failed))
		pass.result = CUDA_ERROR_UNKNOWN;
	return pass;
}

void gate_leave(struct pass *pass)
{
	if (pass->entered && --depth == 0)
		atomic_fetch_sub(&inside, 1);
}

/* For a call that waits. Says whether it was inside and has to resume. */
bool gate_pause(void)
{
	if (!depth)
		return false;
	atomic_fetch_sub(&inside, 1);
	return true;
}

void gate_resume(void)
{
	go_inside();
}

/* For calls that are not held back: may the driver be used at all? */
CUresult gate_peek(void)
{
	if (!atomic_load(&driver_ready) || atomic_load(&forked))
		return CUDA_ERROR_NOT_INITIALIZED;
	return callback ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS;
}

void gate_close(void)
{
	atomic_store(&closed, 1);
}

void gate_open(void)
{
	atomic_store(&closed, 0);
	syscall(SYS_futex, &closed, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* No call inside and no work left on the device. */
bool gate_quiet(void)
{
	return !atomic_load(&inside) && !atomic_load(&work_pending);
}

/* The device's state is lost: whoever waits gets an error. */
void gate_fail(void)
{
	atomic_store(&failed, true);
	gate_open();
}

void gate_callback_begin(void)
{
	callback = true;
}

void gate_callback_end(void)
{
	callback = false;
}

/* A forked child has no driver, as on hardware: its calls fail, its copies of our descriptors stay. */
static void in_child(void)
{
	atomic_store(&forked, atomic_load(&driver_ready));
	atomic_store(&inside, 0);
	atomic_store(&closed, 0);
}

__attribute__((constructor)) static void watch_fork(void)
{
	pthread_atfork(NULL, NULL, in_child);
}
