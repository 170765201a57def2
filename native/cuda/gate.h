/* SPDX-License-Identifier: Apache-2.0
 *
 * The gate: every call that reaches the GPU passes it, and the control thread can close it.
 *
 * A thread says that it is trying (a store), looks at the gate word, and says that it is inside (a
 * store); on the way out it takes that back (a store). No instruction orders the first store before
 * the look: the closer sets the word and calls membarrier(), which puts a fence into every running
 * thread, so that either the thread sees the word or the closer sees the thread. Where there is no
 * membarrier, gate_word leads to a word that is never open, and the slow way has a fence of its own.
 *
 * A signal handler may make calls at any point of this. What it finds in `state` says whether the
 * call below it is past the gate (then it passes, because the closer waits for that one) or only
 * trying (then it has to look for itself). It leaves `state` as it found it.
 */
#ifndef DIAPAUSE_GATE_H
#define DIAPAUSE_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Values of the gate word; the host sets CLOSING in the page of a frozen process before it thaws it. */
enum {
	GATE_OPEN = 0,
	GATE_CLOSING = 1, /* calls from inside a callback of the driver pass, all others wait */
	GATE_CLOSED = 2,  /* all wait */
};

/* gate_thread.state: GATE_TRYING is set while a call looks at the word; the rest counts the calls that
 * are inside, one in the other, in steps of GATE_INSIDE. */
enum { GATE_OUTSIDE = 0, GATE_TRYING = 1, GATE_INSIDE = 2 };

/* One per thread, alone on its cache line; the memory of dead ones is used again and never unmapped. */
struct gate_thread {
	_Atomic uint32_t state;
	_Atomic uint32_t callbacks; /* of the driver, that run in this thread, one in the other */
	_Atomic uint32_t exempt;    /* the control thread: passes always */
	_Atomic int32_t tid;	    /* 0: free */
} __attribute__((aligned(64)));

extern __thread struct gate_thread *gate_self
	__attribute__((tls_model("initial-exec"), visibility("hidden")));
extern _Atomic(_Atomic uint32_t *) gate_word __attribute__((visibility("hidden")));

/* They keep the registers, so that the functions that call them need not. */
#if defined(__has_attribute) && __has_attribute(preserve_most)
#define GATE_SLOW __attribute__((preserve_most, noinline, cold))
#else
#define GATE_SLOW __attribute__((noinline, cold))
#endif

GATE_SLOW void gate_enter_slow(uint32_t state);
GATE_SLOW void gate_leave_slow(void);

/* Before a call of the driver. Comes back when it may be made, with errno as it was. */
static inline void gate_enter(void)
{
	struct gate_thread *self = gate_self;
	uint32_t state = atomic_load_explicit(&self->state, memory_order_relaxed);

	if (__builtin_expect(state != GATE_OUTSIDE, 0)) {
		gate_enter_slow(state);
		return;
	}
	atomic_store_explicit(&self->state, GATE_TRYING, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(atomic_load_explicit(atomic_load_explicit(&gate_word, memory_order_relaxed),
						  memory_order_acquire) != GATE_OPEN,
			     0)) {
		gate_enter_slow(GATE_OUTSIDE);
		return;
	}
	atomic_store_explicit(&self->state, GATE_INSIDE, memory_order_relaxed);
}

static inline void gate_leave(void)
{
	struct gate_thread *self = gate_self;

	if (__builtin_expect(atomic_load_explicit(&self->state, memory_order_relaxed) != GATE_INSIDE, 0))
		gate_leave_slow();
	else
		atomic_store_explicit(&self->state, GATE_OUTSIDE, memory_order_release);
}

/* For the control thread. Deadlines are in nanoseconds of CLOCK_MONOTONIC; what did not come to an end
 * by then is told in `busy` and the gate is open again. */
struct gate_busy {
	uint32_t captures; /* stream captures in progress */
	uint32_t inside;   /* threads inside a call */
};

/* No call is inside any more but those that callbacks of the driver make; they may go on, so that
 * work in the streams can be waited for. True at once if the gate is closed already. */
bool gate_close(uint64_t deadline_ns, struct gate_busy *busy);

/* After gate_close() and the draining of every context: no call is inside at all, and none begins. */
bool gate_seal(uint64_t deadline_ns, struct gate_busy *busy);

void gate_open(void);
uint32_t gate_state(void);

/* The calling thread passes a closed gate: what the driver calls on its behalf must not wait for it. */
void gate_exempt(void);

/* The word of the control page; NULL: the one from before. Only while the gate is open. */
void gate_use_word(_Atomic uint32_t *word);

/* A context is destroyed or reset, and the captures of its streams with it (gate_capture.c). */
void gate_context_gone(void *context);

/* For the parts of the gate.
 *
 * gate_thread.c: */
extern const struct gate_thread gate_nobody; /* what gate_self leads to before the first call */
extern const struct gate_thread gate_stray;  /* and when there was no memory for a record */
struct gate_thread *gate_register(void);
bool gate_each(bool (*visit)(struct gate_thread *thread, void *argument), void *argument);
bool gate_strays(void);		/* are there any? Their calls pass uncounted. */
void gate_forget_threads(void); /* all but the calling one: it alone is there after a fork */

/* Around a function that the driver calls. */
struct gate_thread *gate_begin_callback(void);
void gate_end_callback(struct gate_thread *self);

/* gate_wait.c: */
void gate_park(_Atomic uint32_t *word, uint32_t value); /* until it may have changed */
void gate_wake(_Atomic uint32_t *word);
bool gate_barrier_prepare(void);
bool gate_barrier(void);				 /* a full fence in every thread of the process */
bool gate_nap(unsigned int *naps, uint64_t deadline_ns); /* false: the deadline is over */
bool gate_thread_lives(int32_t tid);

/* gate_capture.c */
uint32_t gate_captures(void);
bool gate_capturing(void *stream);
void gate_forget_captures(void);

#endif
