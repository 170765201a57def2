// SPDX-License-Identifier: Apache-2.0
/* Waiting without a mutex: whoever waits may be held still by ptrace, and nobody else may have to
 * wait for it then. */
#include "softgpu.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* So many are done; wakes who waits for that. */
void ticks_reach(struct ticks *t, uint64_t count)
{
	uint64_t now = atomic_load(&t->count);

	while (now < count) {
		atomic_compare_exchange_weak(&t->count, &now, count);
		now = atomic_load(&t->count);
	}
	atomic_fetch_add(&t->futex, 1);
	syscall(SYS_futex, &t->futex, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* A call that waits is not inside any more, as far as a checkpoint is concerned: it passes the gate
 * again when it goes on. */
void ticks_wait(struct ticks *t, uint64_t count)
{
	bool left = gate_pause();

	for (;;) {
		unsigned seen = atomic_load(&t->futex);

		if (atomic_load(&t->count) >= count)
			break;
		syscall(SYS_futex, &t->futex, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
	}
	if (left)
		gate_resume();
}
