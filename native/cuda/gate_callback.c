// SPDX-License-Identifier: Apache-2.0
/* Functions that the driver calls in the middle of a stream. They run in threads of its own, and what
 * they call must not wait for a gate that is closing: the work behind them would never end.
 *
 * So each goes through run(), which marks the thread. The notes that say what to run are places in
 * pages that stay; taking and leaving one is one exchange, because a signal handler, or a callback
 * in the middle of a call, may take one as well. */
#include "gate.h"
#include "library.h"

#include <sys/mman.h>

#define CHUNK 4096

typedef void host_function(void *argument);
typedef void stream_function(void *stream, CUresult status, void *argument);

struct note {
	_Atomic uint32_t taken;
	uint32_t stays; /* part of a graph, which may run it any number of times */
	void *function;
	void *argument;
};

#define PER_CHUNK ((CHUNK - sizeof(void *)) / sizeof(struct note))

struct chunk {
	struct chunk *next;
	struct note notes[PER_CHUNK];
};

_Static_assert(sizeof(struct chunk) <= CHUNK, "a chunk is a page");

static _Atomic(struct chunk *) passing, staying; /* of notes that are left after a run, and of the others */

static struct note *take_from(struct chunk *chunk)
{
	for (size_t i = 0; i < PER_CHUNK; i++) {
		uint32_t free = 0;

		if (!atomic_load_explicit(&chunk->notes[i].taken, memory_order_relaxed) &&
		    atomic_compare_exchange_strong(&chunk->notes[i].taken, &free, 1))
			return &chunk->notes[i];
	}
	return NULL;
}

static struct note *grow(_Atomic(struct chunk *) *chunks)
{
	struct chunk *chunk = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (chunk == MAP_FAILED)
		return NULL;
	atomic_store(&chunk->notes[0].taken, 1);
	chunk->next = atomic_load(chunks);
	while (!atomic_compare_exchange_weak(chunks, &chunk->next, chunk))
		;
	return &chunk->notes[0];
}

/* Notes that stay fill the newest page; the others leave holes everywhere. */
static struct note *take(bool stays)
{
	_Atomic(struct chunk *) *chunks = stays ? &staying : &passing;
	struct note *note = NULL;

	for (struct chunk *chunk = atomic_load(chunks); chunk && !note; chunk = stays ? NULL : chunk->next)
		note = take_from(chunk);
	return note ? note : grow(chunks);
}

static struct note *write_down(void *stream, void *function, void *argument)
{
	bool stays = gate_capturing(stream);
	struct note *note = function ? take(stays) : NULL;

	if (!note)
		return NULL;
	note->stays = stays;
	note->function = function;
	note->argument = argument;
	return note;
}

static void leave(struct note *note)
{
	atomic_store_explicit(&note->taken, 0, memory_order_release);
}

/* Leave the note before its function runs: that may last, or never come back. */
static struct note read_note(struct note *note)
{
	struct note copy = { .function = note->function, .argument = note->argument };

	if (!note->stays)
		leave(note);
	return copy;
}

static void run_host(void *argument)
{
	struct note note = read_note(argument);
	struct gate_thread *self = gate_begin_callback();

	((host_function *)note.function)(note.argument);
	gate_end_callback(self);
}

static void run_stream(void *stream, CUresult status, void *argument)
{
	struct note note = read_note(argument);
	struct gate_thread *self = gate_begin_callback();

	((stream_function *)note.function)(stream, status, note.argument);
	gate_end_callback(self);
}

typedef CUresult launch_call(void *stream, host_function *function, void *argument);
typedef CUresult add_call(void *stream, stream_function *function, void *argument, unsigned int flags);

/* Without a note the driver gets what it was given: also a NULL, to say what it thinks of that. */
static CUresult launch(int entry, void *stream, host_function *function, void *argument)
{
	launch_call *real = real_function(entry);
	struct note *note;
	CUresult result;

	gate_enter();
	note = write_down(stream, function, argument);
	result = real(stream, note ? run_host : function, note ? note : argument);
	if (note && result != CUDA_SUCCESS)
		leave(note);
	gate_leave();
	return result;
}

static CUresult add(int entry, void *stream, stream_function *function, void *argument, unsigned int flags)
{
	add_call *real = real_function(entry);
	struct note *note;
	CUresult result;

	gate_enter();
	note = write_down(stream, function, argument);
	result = real(stream, note ? run_stream : function, note ? note : argument, flags);
	if (note && result != CUDA_SUCCESS)
		leave(note);
	gate_leave();
	return result;
}

launch_call replaced_cuLaunchHostFunc, replaced_cuLaunchHostFunc_ptsz;
add_call replaced_cuStreamAddCallback, replaced_cuStreamAddCallback_ptsz;

CUresult replaced_cuLaunchHostFunc(void *stream, host_function *function, void *argument)
{
	return launch(ENTRY_cuLaunchHostFunc, stream, function, argument);
}

CUresult replaced_cuLaunchHostFunc_ptsz(void *stream, host_function *function, void *argument)
{
	return launch(ENTRY_cuLaunchHostFunc_ptsz, stream, function, argument);
}

CUresult replaced_cuStreamAddCallback(void *stream, stream_function *function, void *argument,
				      unsigned int flags)
{
	return add(ENTRY_cuStreamAddCallback, stream, function, argument, flags);
}

CUresult replaced_cuStreamAddCallback_ptsz(void *stream, stream_function *function, void *argument,
					   unsigned int flags)
{
	return add(ENTRY_cuStreamAddCallback_ptsz, stream, function, argument, flags);
}

/* A captured function is found again by who looks at the graph. */
struct host_node {
	host_function *function;
	void *argument;
};

typedef CUresult node_call(void *node, struct host_node *host);
node_call replaced_cuGraphHostNodeGetParams;

CUresult replaced_cuGraphHostNodeGetParams(void *node, struct host_node *host)
{
	node_call *real = real_function(ENTRY_cuGraphHostNodeGetParams);
	CUresult result;

	gate_enter();
	result = real(node, host);
	if (result == CUDA_SUCCESS && host->function == run_host) {
		struct note *note = host->argument;

		*host = (struct host_node){ note->function, note->argument };
	}
	gate_leave();
	return result;
}
