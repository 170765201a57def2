// SPDX-License-Identifier: Apache-2.0
/* The gate itself (gate.h): the way in when it is not simply open, and closing it. */
#include "gate.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

enum { UNTRIED, TRYING, WITH_MEMBARRIER, WITH_FENCE };

static atomic_int mode;
static _Atomic int32_t owner;  /* the process that the real word is of */
static _Atomic uint32_t early; /* the word while there is no control page */
static _Atomic uint32_t never_open = GATE_CLOSED;
static _Atomic(_Atomic uint32_t *) real_word = &early;

_Atomic(_Atomic uint32_t *) gate_word = &never_open;

/* What the fast way looks at. Threads that do this together agree in the end: whoever sees the real
 * word change does it again. */
static void publish(void)
{
	_Atomic uint32_t *word;

	do {
		word = atomic_load(&real_word);
		atomic_store(&gate_word, atomic_load(&mode) == WITH_MEMBARRIER ? word : &never_open);
	} while (atomic_load(&real_word) != word);
}

static void use(_Atomic uint32_t *word)
{
	atomic_store(&real_word, word ? word : &early);
	publish();
}

/* The only thread of a child: page and threads are the parent's. */
static void forked(void)
{
	atomic_store(&owner, getpid());
	atomic_store(&early, GATE_OPEN);
	use(NULL);
	gate_forget_threads();
	gate_forget_captures();
}

static void set_up(void)
{
	int expected = UNTRIED;
	bool ready;

	if (!atomic_compare_exchange_strong(&mode, &expected, TRYING))
		return;
	atomic_store(&owner, getpid());
	ready = !pthread_atfork(NULL, NULL, forked) && gate_barrier_prepare();
	atomic_store(&mode, ready ? WITH_MEMBARRIER : WITH_FENCE);
	publish();
}

void gate_use_word(_Atomic uint32_t *word)
{
	set_up();
	use(word);
}

/* A child of a bare clone(), which runs no handlers: nobody opens the parent's gate for it. */
static bool is_strange_child(void)
{
	return atomic_load_explicit(&owner, memory_order_relaxed) != getpid();
}

static bool may_pass(struct gate_thread *self, uint32_t word)
{
	return word == GATE_OPEN || atomic_load_explicit(&self->exempt, memory_order_relaxed) ||
	       (word == GATE_CLOSING && atomic_load_explicit(&self->callbacks, memory_order_relaxed));
}

/* `state` is what the call found: GATE_TRYING if it is made by a signal handler that came between
 * the two stores of another call. While it waits nobody is inside, so that is taken back as well. The
 * other call may have seen the gate open, long ago; it was open again, with the state set, before
 * we went in, and so it is as if the other had only seen that. */
static void go_in(struct gate_thread *self, uint32_t state)
{
	for (;;) {
		_Atomic uint32_t *word;
		uint32_t value;

		atomic_store_explicit(&self->state, GATE_TRYING, memory_order_relaxed);
		atomic_thread_fence(memory_order_seq_cst);
		word = atomic_load_explicit(&real_word, memory_order_acquire);
		value = atomic_load_explicit(word, memory_order_acquire);
		if (may_pass(self, value))
			break;
		if (is_strange_child())
			break;
		atomic_store_explicit(&self->state, GATE_OUTSIDE, memory_order_release);
		gate_park(word, value);
	}
	atomic_store_explicit(&self->state, state + GATE_INSIDE, memory_order_relaxed);
}

GATE_SLOW void gate_enter_slow(uint32_t state)
{
	struct gate_thread *self = gate_self;
	int saved = errno;

	if (self == &gate_nobody) {
		set_up();
		self = gate_register();
		state = GATE_OUTSIDE;
	}
	if (self == &gate_stray)
		; /* nobody can close the gate any more */
	else if (state >= GATE_INSIDE)
		atomic_store_explicit(&self->state, state + GATE_INSIDE, memory_order_relaxed);
	else
		go_in(self, state);
	errno = saved;
}

GATE_SLOW void gate_leave_slow(void)
{
	struct gate_thread *self = gate_self;
	uint32_t state = atomic_load_explicit(&self->state, memory_order_relaxed);

	if (self != &gate_stray)
		atomic_store_explicit(&self->state, state - GATE_INSIDE, memory_order_release);
}

void gate_exempt(void)
{
	struct gate_thread *self;

	set_up();
	self = gate_register();
	if (self != &gate_stray)
		atomic_store(&self->exempt, 1);
}

/* The function may come without any call of ours before it, in a thread of the driver. */
struct gate_thread *gate_begin_callback(void)
{
	struct gate_thread *self;
	int saved = errno;

	set_up();
	self = gate_register();
	errno = saved;
	if (self != &gate_stray)
		atomic_fetch_add(&self->callbacks, 1);
	return self;
}

void gate_end_callback(struct gate_thread *self)
{
	if (self != &gate_stray)
		atomic_fetch_sub(&self->callbacks, 1);
}

/* Closing. */

struct wait {
	uint64_t deadline_ns;
	unsigned int naps;
	bool callbacks_too;
	uint32_t inside; /* threads that were inside at the deadline */
};

static bool is_outside(struct gate_thread *thread, bool callbacks_too)
{
	if (atomic_load_explicit(&thread->state, memory_order_acquire) == GATE_OUTSIDE ||
	    atomic_load_explicit(&thread->exempt, memory_order_relaxed))
		return true;
	return !callbacks_too && atomic_load_explicit(&thread->callbacks, memory_order_relaxed);
}

/* Seen outside once is enough: what it does afterwards finds the gate closed. A thread that was
 * cancelled inside a call never leaves it. */
static bool wait_for(struct gate_thread *thread, void *argument)
{
	struct wait *wait = argument;

	while (!is_outside(thread, wait->callbacks_too)) {
		if (!gate_thread_lives(atomic_load(&thread->tid)))
			break;
		if (!gate_nap(&wait->naps, wait->deadline_ns)) {
			wait->inside++;
			break;
		}
	}
	return true;
}

/* After the word was set: how many are still inside at the deadline. */
static uint32_t wait_for_all(uint64_t deadline_ns, bool callbacks_too)
{
	struct wait wait = { .deadline_ns = deadline_ns, .callbacks_too = callbacks_too };

	atomic_thread_fence(memory_order_seq_cst);
	if (gate_strays() || (atomic_load(&mode) != WITH_FENCE && !gate_barrier()))
		return 1; /* we cannot know */
	gate_each(wait_for, &wait);
	return wait.inside;
}

static void set(uint32_t value)
{
	_Atomic uint32_t *word = atomic_load(&real_word);

	atomic_store(word, value);
	if (value == GATE_OPEN)
		gate_wake(word);
}

uint32_t gate_state(void)
{
	return atomic_load(atomic_load(&real_word));
}

void gate_open(void)
{
	set(GATE_OPEN);
}

static bool give_up(void)
{
	gate_open();
	return false;
}

/* A thread that captures has to come to the end of it, so the gate is open meanwhile. */
static bool wait_for_captures(uint64_t deadline_ns)
{
	unsigned int naps = 0;

	if (gate_captures() && gate_state() != GATE_OPEN)
		gate_open();
	while (gate_captures())
		if (!gate_nap(&naps, deadline_ns))
			return false;
	return true;
}

bool gate_close(uint64_t deadline_ns, struct gate_busy *busy)
{
	*busy = (struct gate_busy){ 0 };
	set_up();
	if (gate_state() == GATE_CLOSED)
		return true;
	for (;;) {
		if (!wait_for_captures(deadline_ns)) {
			busy->captures = gate_captures();
			return give_up();
		}
		set(GATE_CLOSING);
		busy->inside = wait_for_all(deadline_ns, false);
		if (busy->inside)
			return give_up();
		if (!gate_captures())
			return true;
	}
}

bool gate_seal(uint64_t deadline_ns, struct gate_busy *busy)
{
	*busy = (struct gate_busy){ 0 };
	set(GATE_CLOSED);
	busy->inside = wait_for_all(deadline_ns, true);
	return busy->inside ? give_up() : true;
}
