/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine of gate_model.c: the atomics of gate.c as steps of coroutines, with delayed stores.
 */
#ifndef GATE_MACHINE_H
#define GATE_MACHINE_H

#include "check.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdint.h>
#include <ucontext.h>

static uint64_t model_load(void *at, size_t size);
static void model_store(void *at, size_t size, uint64_t value, memory_order order);
static bool model_exchange(void *at, size_t size, void *expected, uint64_t value);
static uint64_t model_add(void *at, size_t size, uint64_t value);
static void model_fence(void);

#undef atomic_load
#undef atomic_store
#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_compare_exchange_strong
#undef atomic_fetch_add
#undef atomic_fetch_sub
#undef atomic_thread_fence
#define PLAIN(at) __typeof__(__c11_atomic_load(at, __ATOMIC_RELAXED))
#define atomic_load_explicit(at, order) ((PLAIN(at))model_load((void *)(at), sizeof(*(at))))
#define atomic_load(at) atomic_load_explicit(at, memory_order_seq_cst)
#define atomic_store_explicit(at, value, order) \
	model_store((void *)(at), sizeof(*(at)), (uint64_t)(value), order)
#define atomic_store(at, value) atomic_store_explicit(at, value, memory_order_seq_cst)
#define atomic_compare_exchange_strong(at, expected, value) \
	model_exchange((void *)(at), sizeof(*(at)), expected, (uint64_t)(value))
#define atomic_fetch_add(at, value) model_add((void *)(at), sizeof(*(at)), value)
#define atomic_fetch_sub(at, value) model_add((void *)(at), sizeof(*(at)), -(uint64_t)(value))
#define atomic_thread_fence(order) model_fence()

#include "../gate.c"

/* What is explored. */
struct scenario {
	const char *name;
	int programs, calls; /* threads that make calls, and how many each */
	int signals;	     /* that come in all, also into handlers */
	int rounds;	     /* of closing and opening */
	bool callback;	     /* the last thread is the driver's, and in a callback */
	bool undrained;	     /* for which nobody waits before the gate is sealed */
	bool fence;	     /* no membarrier */
	bool host_begins;    /* the word says CLOSING when everything starts */
	bool deadlines;	     /* may be over at any time */
	bool broken;	     /* without the barrier, or the fence: a call has to get through */
};

/* The machine. */

enum { THREADS = 4, STACK = 64 << 10, DELAYED = 16 };
enum { RUNS, NAPS, PARKED, ENDED };

struct delayed {
	uint32_t *at;
	uint32_t value;
};

struct model_thread {
	void (*program)(void);
	jmp_buf at;
	bool started;
	int state;
	bool signalled;		  /* take one when it goes on */
	struct gate_thread *self; /* gate_self, while it does not run */
	uint64_t history;	  /* hash of what it has read */
	uint64_t napped, parked;  /* history when it first did in this wait; 0: not yet */
	bool only_read;		  /* since it napped */
	uint64_t version;	  /* of memory, when it woke */
	struct delayed delayed[DELAYED];
	int n_delayed;
	bool in_driver, in_callback;
};

static struct scenario scenario;
static struct model_thread threads[THREADS];
static int n_threads, running = -1, signals_left;
static jmp_buf scheduler;
static char stacks[THREADS][STACK] __attribute__((aligned(64)));
static struct gate_thread records[THREADS];
static _Atomic uint32_t model_word;
static bool closed, sealed, callback_over;
static uint64_t version; /* counts changes of memory */
static const char *failure;

#define FAIL_IF(condition)                    \
	do {                                  \
		if ((condition) && !failure)  \
			failure = #condition; \
	} while (0)

/* Only what changes while the threads run is worth a step. */
static bool is_watched(const void *at)
{
	if (running < 0)
		return false;
	if (at == &model_word)
		return true;
	for (int i = 0; i < THREADS; i++) {
		const struct gate_thread *record = &records[i];

		if (at == &record->state || (scenario.callback && at == &record->callbacks))
			return true;
	}
	return false;
}

/* Nobody else writes what this one reads, and no signal can come in between. */
static bool is_private(const void *at)
{
	return at == &gate_self->state && !scenario.signals;
}

static void mix(uint64_t *hash, uint64_t value)
{
	*hash = (*hash ^ value) * 0x9e3779b97f4a7c15ull;
	*hash ^= *hash >> 29;
}

static void handler(void);

/* The scheduler decides what is next; comes back when it is this thread. */
static void step(void)
{
	struct model_thread *me = &threads[running];

	me->self = gate_self;
	if (!_setjmp(me->at))
		_longjmp(scheduler, 1);
	gate_self = me->self;
	mix(&me->history, 3); /* it is not where it was */
	if (me->signalled) {
		me->signalled = false;
		handler();
	}
}

static void change(void)
{
	version++;
	for (int i = 0; i < n_threads; i++)
		if (threads[i].state == NAPS)
			threads[i].state = RUNS;
}

static void commit(struct model_thread *thread)
{
	*thread->delayed[0].at = thread->delayed[0].value;
	thread->n_delayed--;
	memmove(thread->delayed, thread->delayed + 1, thread->n_delayed * sizeof(thread->delayed[0]));
	change();
}

static void drain(struct model_thread *thread)
{
	while (thread->n_delayed)
		commit(thread);
}

static uint64_t model_load(void *at, size_t size)
{
	struct model_thread *me;
	uint32_t value;

	if (!is_watched(at))
		return size == 4 ? *(uint32_t *)at : *(uint64_t *)at;
	if (!is_private(at))
		step();
	me = &threads[running];
	value = *(uint32_t *)at;
	for (int i = 0; i < me->n_delayed; i++)
		if (me->delayed[i].at == at)
			value = me->delayed[i].value;
	mix(&me->history, value + 1);
	return value;
}

static void model_store(void *at, size_t size, uint64_t value, memory_order order)
{
	struct model_thread *me;

	if (!is_watched(at)) {
		memcpy(at, &value, size);
		return;
	}
	step();
	me = &threads[running];
	CHECK(me->n_delayed < DELAYED, "too many stores");
	me->delayed[me->n_delayed++] = (struct delayed){ at, value };
	me->only_read = false;
	mix(&me->history, 100 + value);
	if (order == memory_order_seq_cst)
		drain(me);
}

static bool model_exchange(void *at, size_t size, void *expected, uint64_t value)
{
	CHECK(!is_watched(at), "not in this model");
	if (memcmp(at, expected, size)) {
		memcpy(expected, at, size);
		return false;
	}
	memcpy(at, &value, size);
	return true;
}

static uint64_t model_add(void *at, size_t size, uint64_t value)
{
	uint64_t old = model_load(at, size);

	if (is_watched(at))
		model_store(at, size, old + value, memory_order_seq_cst);
	else
		memcpy(at, &(uint64_t){ old + value }, size);
	return old;
}

static void model_fence(void)
{
	if (running < 0)
		return;
	step();
	if (!scenario.broken)
		drain(&threads[running]);
	mix(&threads[running].history, 7);
}

#endif
