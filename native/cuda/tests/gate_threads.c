// SPDX-License-Identifier: Apache-2.0
/* Threads that come, go, end in the middle of a call, fork, and find no memory. */
#include "gate_test.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static atomic_int inside, calls, may_leave;

static int on_call(const char *name, void *first, void *second, void *third)
{
	atomic_fetch_add(&inside, 1);
	while (!strcmp(name, "cuStreamSynchronize") && !atomic_load(&may_leave))
		nap(); /* where a thread can be cancelled */
	atomic_fetch_sub(&inside, 1);
	atomic_fetch_add(&calls, 1);
	return 0;
}

static void *query(void *event)
{
	cuEventQuery(event);
	return NULL;
}

static void *synchronize(void *stream)
{
	cuStreamSynchronize(stream);
	return NULL;
}

static bool count_one(struct gate_thread *thread, void *n)
{
	++*(int *)n;
	return true;
}

static int records(void)
{
	int n = 0;

	gate_each(count_one, &n);
	return n;
}

static void records_of_ended_threads_are_used_again(void)
{
	int before = records(), after;

	for (int i = 0; i < 2000; i++)
		pthread_join(begin(query, NULL), NULL);
	after = records();
	CHECK(after <= before + 64, "%d records, %d before", after, before);
	must_close();
	gate_open();
}

static pthread_barrier_t barrier;

static void *query_together(void *event)
{
	cuEventQuery(NULL);
	pthread_barrier_wait(&barrier);
	cuEventQuery(NULL);
	pthread_barrier_wait(&barrier);
	return gate_self;
}

static void every_thread_has_a_record_of_its_own(void)
{
	enum { THREADS = 300 };
	void *selves[THREADS];
	pthread_t threads[THREADS];

	pthread_barrier_init(&barrier, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		threads[i] = begin(query_together, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], &selves[i]);
	for (int i = 0; i < THREADS; i++)
		for (int j = 0; j < i; j++)
			CHECK(selves[i] != selves[j], "threads %d and %d", i, j);
}

static void one_that_was_cancelled_inside_is_not_waited_for(void)
{
	pthread_t thread;

	atomic_store(&may_leave, 0);
	atomic_store(&inside, 0);
	thread = begin(synchronize, NULL);
	WAIT_FOR(atomic_load(&inside));
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	must_close();
	gate_open();
	atomic_store(&may_leave, 1);
	atomic_store(&inside, 0);
}

static pthread_key_t late;

/* The library's own state of a thread must outlive what the program does at its end. */
static void query_late(void *rounds)
{
	cuEventQuery(NULL);
	if (rounds != (void *)1)
		pthread_setspecific(late, (char *)rounds - 1);
}

static void *leave_something(void *argument)
{
	pthread_setspecific(late, (void *)4); /* PTHREAD_DESTRUCTOR_ITERATIONS */
	return NULL;
}

static void calls_in_the_last_moments_of_a_thread_are_calls(void)
{
	pthread_key_create(&late, query_late);
	atomic_store(&calls, 0);
	for (int i = 0; i < 100; i++)
		pthread_join(begin(leave_something, NULL), NULL);
	CHECK(atomic_load(&calls) == 400, "%d calls", atomic_load(&calls));
	must_close();
	gate_open();
}

/* Forking. In the child there is nobody to open the gate of its parent. */

static _Atomic uint32_t *word; /* shared, as that of the control page is */

static void in_child(pid_t child)
{
	int status;

	if (child == 0) {
		alarm(20);
		cuEventQuery(NULL); /* at once, although the parent's gate is closed */
		must_close();	    /* a gate of its own, and no threads but this one */
		gate_open();
		pthread_join(begin(query, NULL), NULL);
		_exit(42);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child, "no child");
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42, "status %x", status);
}

static void a_child_is_not_held_by_its_parents_gate(void)
{
	pthread_t thread;

	word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	gate_use_word(word);
	must_close();
	thread = begin(query, NULL);
	STAYS_FALSE(atomic_load(&inside));
	in_child(fork());
	CHECK(gate_state() == GATE_CLOSED, "the parent's stays closed");
	gate_open();
	pthread_join(thread, NULL);
	gate_use_word(NULL);
}

static void a_child_does_not_wait_for_its_parents_threads(void)
{
	pthread_t thread;

	atomic_store(&may_leave, 0);
	thread = begin(synchronize, NULL);
	WAIT_FOR(atomic_load(&inside));
	in_child(fork());
	atomic_store(&may_leave, 1);
	pthread_join(thread, NULL);
}

/* A bare clone() runs no handlers: only that it is not held is promised. */
static void a_child_that_nobody_told_is_not_held_either(void)
{
	pid_t child;
	int status;

	must_close();
	child = syscall(SYS_clone, SIGCHLD, 0, NULL, NULL, 0);
	if (child == 0) {
		alarm(20);
		cuEventQuery(NULL);
		_exit(42);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child, "no child");
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42, "status %x", status);
	gate_open();
}

static void a_vfork_changes_nothing(void)
{
	char *argv[] = { "true", NULL };
	pid_t child;
	int status;

	must_close();
	CHECK(!posix_spawn(&child, "/bin/true", NULL, NULL, argv, NULL), "spawn");
	CHECK(waitpid(child, &status, 0) == child && !status, "status %x", status);
	CHECK(gate_state() == GATE_CLOSED, "state");
	gate_open();
	must_close();
	gate_open();
	child = vfork();
	if (child == 0) {
		execv("/bin/true", argv);
		_exit(1);
	}
	CHECK(waitpid(child, &status, 0) == child && !status, "status %x", status);
	cuEventQuery(NULL);
}

/* Without memory for a record a thread goes on uncounted, and the gate cannot be closed any more. */
static void forbid_mmap(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = 4, .filter = filter };

	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
	CHECK(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program), "seccomp");
}

static void *starve(void *argument)
{
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 100; i++)
		cuEventQuery(NULL);
	pthread_barrier_wait(&barrier);
	return NULL;
}

/* Threads that exist before, because the filter is inherited by those that come and a thread needs mmap. */
static void without_memory_calls_go_on_and_it_stays_open(void)
{
	enum { THREADS = 100 };
	int before = atomic_load(&calls);
	pthread_t threads[THREADS];
	struct gate_busy busy;

	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		threads[i] = begin(starve, NULL);
	forbid_mmap();
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK(atomic_load(&calls) == before + 100 * THREADS, "all calls went through");
	CHECK(gate_strays() && !gate_close(in(SHORT), &busy) && busy.inside, "closed with strays");
	CHECK(gate_state() == GATE_OPEN, "state");
}

static int probe(char **argv)
{
	stub_says(argv, on_call);
	without_memory_calls_go_on_and_it_stays_open();
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 2)
		return probe(argv);
	stub_says(argv, on_call);
	records_of_ended_threads_are_used_again();
	every_thread_has_a_record_of_its_own();
	one_that_was_cancelled_inside_is_not_waited_for();
	calls_in_the_last_moments_of_a_thread_are_calls();
	a_child_is_not_held_by_its_parents_gate();
	a_child_does_not_wait_for_its_parents_threads();
	a_child_that_nobody_told_is_not_held_either();
	a_vfork_changes_nothing();
	CHECK(start("without memory", NULL) == 0, "without memory");
	return 0;
}
