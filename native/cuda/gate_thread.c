// SPDX-License-Identifier: Apache-2.0
/* The threads that the gate knows.
 *
 * A record has its place for good: a thread that ends leaves it behind, with nobody inside, and it is
 * found again when all are taken, by the number of a thread that is no more. So a thread needs neither
 * a destructor nor malloc, and the closer may look at any record at any time. */
#include "gate.h"

#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHUNK 4096
#define PER_CHUNK (CHUNK / sizeof(struct gate_thread) - 1)

struct chunk {
	struct chunk *next;
	struct gate_thread threads[PER_CHUNK];
};

_Static_assert(sizeof(struct chunk) == CHUNK, "a chunk is a page");

/* A state that no thread of ours has outside: it leads every call the slow way. */
const struct gate_thread gate_nobody = { .state = GATE_INSIDE | GATE_TRYING };
const struct gate_thread gate_stray = { .state = GATE_INSIDE | GATE_TRYING };
__thread struct gate_thread *gate_self = (struct gate_thread *)&gate_nobody;

static struct chunk first;
static _Atomic(struct chunk *) chunks = &first;
static atomic_bool strays;

bool gate_each(bool (*visit)(struct gate_thread *thread, void *argument), void *argument)
{
	for (struct chunk *chunk = atomic_load(&chunks); chunk; chunk = chunk->next)
		for (size_t i = 0; i < PER_CHUNK; i++)
			if (!visit(&chunk->threads[i], argument))
				return false;
	return true;
}

struct search {
	int32_t tid, wanted; /* of the caller, and of the record that it may take */
	bool dead;	     /* or one whose thread has ended */
	struct gate_thread *found;
};

static bool take(struct gate_thread *thread, void *argument)
{
	struct search *search = argument;
	int32_t tid = atomic_load(&thread->tid);

	if (tid != search->wanted && !(search->dead && !gate_thread_lives(tid)))
		return true;
	if (!atomic_compare_exchange_strong(&thread->tid, &tid, search->tid))
		return true;
	search->found = thread;
	return false;
}

static struct gate_thread *find(int32_t tid, int32_t wanted, bool dead)
{
	struct search search = { .tid = tid, .wanted = wanted, .dead = dead };

	gate_each(take, &search);
	return search.found;
}

static struct gate_thread *grow(int32_t tid)
{
	struct chunk *chunk = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (chunk == MAP_FAILED)
		return NULL;
	atomic_store(&chunk->threads[0].tid, tid);
	chunk->next = atomic_load(&chunks);
	while (!atomic_compare_exchange_weak(&chunks, &chunk->next, chunk))
		;
	return &chunk->threads[0];
}

/* A record with our own number is one of an earlier thread that had it. */
struct gate_thread *gate_register(void)
{
	int32_t tid = syscall(SYS_gettid);
	struct gate_thread *self = gate_self;

	if (self != &gate_nobody)
		return self;
	self = find(tid, tid, false);
	if (!self)
		self = find(tid, 0, false);
	if (!self)
		self = find(tid, 0, true);
	if (!self)
		self = grow(tid);
	if (!self) {
		atomic_store(&strays, true);
		return gate_self = (struct gate_thread *)&gate_stray;
	}
	atomic_store(&self->callbacks, 0);
	atomic_store(&self->exempt, 0);
	atomic_store(&self->state, GATE_OUTSIDE);
	gate_self = self;
	return self;
}

bool gate_strays(void)
{
	return atomic_load(&strays);
}

static bool forget(struct gate_thread *thread, void *argument)
{
	if (thread == gate_self) {
		atomic_store(&thread->tid, (int32_t)syscall(SYS_gettid));
		return true;
	}
	atomic_store(&thread->state, GATE_OUTSIDE);
	atomic_store(&thread->tid, 0);
	return true;
}

void gate_forget_threads(void)
{
	gate_each(forget, NULL);
	atomic_store(&strays, gate_self == &gate_stray);
}
