// SPDX-License-Identifier: Apache-2.0
/* Many threads call without a pause, signal handlers among them, while the gate is closed and opened:
 * closed means that nobody is inside. Once with membarrier, and once in a process that may not use it. */
#include "gate_test.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>

#define THREADS 64
#define ROUNDS 1000

static atomic_int inside, closed, seen, done;
static _Atomic uint64_t calls, handled;
static long shared; /* belongs to the closer while the gate is closed, else it is read by all */

static int on_call(const char *name, void *first, void *second, void *third)
{
	atomic_fetch_add(&inside, 1);
	if (atomic_load(&closed))
		atomic_store(&seen, 1);
	for (int i = 0; i < 300; i++)
		__asm__ volatile("" : : "r"(shared) : "memory");
	if (atomic_load(&closed))
		atomic_store(&seen, 1);
	atomic_fetch_sub(&inside, 1);
	atomic_fetch_add(&calls, 1);
	return 0;
}

static void *hammer(void *argument)
{
	unsigned int i = 0;

	while (!atomic_load(&done)) {
		cuEventQuery(NULL);
		if (++i % 64 == 0)
			nap(); /* 64 of them are to make the others late, not to keep the cores from them */
	}
	return NULL;
}

static void on_signal(int signal)
{
	cuEventQuery(NULL);
	atomic_fetch_add(&handled, 1);
}

static void *pester(void *argument)
{
	pthread_t *threads = argument;

	while (!atomic_load(&done))
		for (int i = 0; i < THREADS && !atomic_load(&done); i++) {
			pthread_kill(threads[i], SIGUSR1);
			sched_yield();
		}
	return NULL;
}

static void close_once(int round)
{
	uint64_t before;

	must_close();
	atomic_store(&closed, 1);
	before = atomic_load(&calls);
	for (int i = 0; i < 20; i++) {
		CHECK(!atomic_load(&inside), "round %d: a call is inside", round);
		sched_yield();
	}
	CHECK(atomic_load(&calls) == before && !atomic_load(&seen), "round %d: a call went through", round);
	shared = round;
	atomic_store(&closed, 0);
	gate_open();
}

static void hammer_at_it(int rounds, bool signals)
{
	pthread_t threads[THREADS], pesterer;

	for (int i = 0; i < THREADS; i++)
		threads[i] = begin(hammer, NULL);
	if (signals)
		pesterer = begin(pester, threads);
	for (int i = 0; i < rounds; i++)
		close_once(i);
	atomic_store(&done, 1);
	if (signals)
		pthread_join(pesterer, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK(atomic_load(&calls) > (uint64_t)rounds, "they did call");
	CHECK(!signals || atomic_load(&handled) > THREADS, "handlers did run");
}

/* As on a kernel without it, or in a container that may not call it. */
static void forbid_membarrier(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = 4, .filter = filter };

	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), "seccomp");
	CHECK(syscall(SYS_membarrier, 0, 0, 0) < 0, "membarrier");
}

static int probe(char **argv, const char *how)
{
	bool signals = strstr(how, "signals");

	stub_says(argv, on_call);
	check_case = how;
	signal(SIGUSR1, on_signal);
	if (strstr(how, "no membarrier"))
		forbid_membarrier();
	hammer_at_it(strcmp(how, "threads") ? ROUNDS / 4 : ROUNDS, signals);
	return 0;
}

int main(int argc, char **argv)
{
	static const char *const cases[] = { "threads", "signals", "no membarrier",
					     "no membarrier, signals" };

	if (argc > 2)
		return probe(argv, argv[2]);
	for (int i = 0; i < 4; i++)
		CHECK(start(cases[i], NULL) == 0, "%s", cases[i]);
	return 0;
}
