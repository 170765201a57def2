// SPDX-License-Identifier: Apache-2.0
/* Stream captures in progress. Nothing can be saved in the middle of one, and the thread that captures
 * has to make calls to come to its end; so the gate is closed between captures.
 *
 * Which capture is over, the driver says: ending one may fail and end it all the same. */
#include "gate.h"
#include "library.h"

#include <sys/mman.h>

#define CHUNK 4096

struct place {
	_Atomic(void *) stream; /* NULL: free */
	_Atomic(void *) context;
};

#define PER_CHUNK (CHUNK / sizeof(struct place) - 1)

struct chunk {
	struct chunk *next;
	void *reserved;
	struct place places[PER_CHUNK];
};

_Static_assert(sizeof(struct chunk) == CHUNK, "a chunk is a page");

static struct chunk first;
static _Atomic(struct chunk *) chunks = &first;
static _Atomic uint32_t captures; /* also those for which there was no memory */

typedef CUresult stream_call(void *stream);
typedef CUresult begin_call(void *stream, int mode);
typedef CUresult begin_to_graph_call(void *stream, void *graph, const void *dependencies, const void *edges,
				     size_t n, int mode);
typedef CUresult end_call(void *stream, void **graph);
typedef CUresult query_call(void *stream, void *result);

uint32_t gate_captures(void)
{
	return atomic_load(&captures);
}

void gate_forget_captures(void)
{
	for (struct chunk *chunk = atomic_load(&chunks); chunk; chunk = chunk->next)
		for (size_t i = 0; i < PER_CHUNK; i++)
			atomic_store(&chunk->places[i].stream, NULL);
	atomic_store(&captures, 0);
}

/* 0 is one of these two, by the variant of the function. */
#define LEGACY ((void *)1)
#define PER_THREAD ((void *)2)

static void *named(void *stream, bool per_thread)
{
	if (stream)
		return stream;
	return per_thread ? PER_THREAD : LEGACY;
}

static bool is_capturing(void *stream, bool *known)
{
	query_call *query = real_function(ENTRY_cuStreamIsCapturing);
	int status = 0;

	*known = query(stream, &status) == CUDA_SUCCESS;
	return *known && status;
}

bool gate_capturing(void *stream)
{
	bool known;

	return gate_captures() && is_capturing(stream, &known);
}

/* The first place that holds `stream` (NULL: that is free), which holds `next` from now on. */
static struct place *exchange(void *stream, void *next)
{
	for (struct chunk *chunk = atomic_load(&chunks); chunk; chunk = chunk->next)
		for (size_t i = 0; i < PER_CHUNK; i++) {
			void *there = stream;

			if (atomic_load_explicit(&chunk->places[i].stream, memory_order_relaxed) == stream &&
			    atomic_compare_exchange_strong(&chunk->places[i].stream, &there, next))
				return &chunk->places[i];
		}
	return NULL;
}

static struct place *grow(void *stream)
{
	struct chunk *chunk = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (chunk == MAP_FAILED)
		return NULL;
	atomic_store(&chunk->places[0].stream, stream);
	chunk->next = atomic_load(&chunks);
	while (!atomic_compare_exchange_weak(&chunks, &chunk->next, chunk))
		;
	return &chunk->places[0];
}

static void began(void *stream)
{
	query_call *context_of = real_function(ENTRY_cuStreamGetCtx);
	void *context = NULL;
	struct place *place;

	context_of(stream, &context);
	atomic_fetch_add(&captures, 1);
	place = exchange(NULL, stream);
	if (!place)
		place = grow(stream);
	if (place)
		atomic_store(&place->context, context);
}

static void ended(void *stream)
{
	if (gate_captures() && exchange(stream, NULL))
		atomic_fetch_sub(&captures, 1);
}

void gate_context_gone(void *context)
{
	for (struct chunk *chunk = atomic_load(&chunks); chunk && gate_captures(); chunk = chunk->next)
		for (size_t i = 0; i < PER_CHUNK; i++) {
			void *there = atomic_load(&chunk->places[i].stream);

			if (there && atomic_load(&chunk->places[i].context) == context &&
			    atomic_compare_exchange_strong(&chunk->places[i].stream, &there, NULL))
				atomic_fetch_sub(&captures, 1);
		}
}

/* The calls. entries.S leads the exported names here. */

static CUresult begin(int entry, void *stream, int mode, bool per_thread)
{
	begin_call *real = real_function(entry);
	CUresult result;

	gate_enter();
	result = real(stream, mode);
	if (result == CUDA_SUCCESS)
		began(named(stream, per_thread));
	gate_leave();
	return result;
}

static CUresult begin_to_graph(int entry, void *stream, void *graph, const void *dependencies,
			       const void *edges, size_t n, int mode, bool per_thread)
{
	begin_to_graph_call *real = real_function(entry);
	CUresult result;

	gate_enter();
	result = real(stream, graph, dependencies, edges, n, mode);
	if (result == CUDA_SUCCESS)
		began(named(stream, per_thread));
	gate_leave();
	return result;
}

static CUresult end(int entry, void *stream, void **graph, bool per_thread)
{
	end_call *real = real_function(entry);
	CUresult result;
	bool known;

	gate_enter();
	result = real(stream, graph);
	if (!is_capturing(named(stream, per_thread), &known) && (known || result == CUDA_SUCCESS))
		ended(named(stream, per_thread));
	gate_leave();
	return result;
}

static CUresult destroy(int entry, void *stream)
{
	stream_call *real = real_function(entry);
	CUresult result;

	gate_enter();
	result = real(stream);
	if (result == CUDA_SUCCESS)
		ended(stream);
	gate_leave();
	return result;
}

/* The mode came with the second version, and the first is the global one. */
stream_call replaced_cuStreamBeginCapture, replaced_cuStreamBeginCapture_ptsz;
begin_call replaced_cuStreamBeginCapture_v2, replaced_cuStreamBeginCapture_v2_ptsz;
begin_to_graph_call replaced_cuStreamBeginCaptureToGraph, replaced_cuStreamBeginCaptureToGraph_ptsz;
end_call replaced_cuStreamEndCapture, replaced_cuStreamEndCapture_ptsz;
stream_call replaced_cuStreamDestroy, replaced_cuStreamDestroy_v2;

CUresult replaced_cuStreamBeginCapture(void *stream)
{
	return begin(ENTRY_cuStreamBeginCapture, stream, 0, false);
}

CUresult replaced_cuStreamBeginCapture_ptsz(void *stream)
{
	return begin(ENTRY_cuStreamBeginCapture_ptsz, stream, 0, true);
}

CUresult replaced_cuStreamBeginCapture_v2(void *stream, int mode)
{
	return begin(ENTRY_cuStreamBeginCapture_v2, stream, mode, false);
}

CUresult replaced_cuStreamBeginCapture_v2_ptsz(void *stream, int mode)
{
	return begin(ENTRY_cuStreamBeginCapture_v2_ptsz, stream, mode, true);
}

CUresult replaced_cuStreamBeginCaptureToGraph(void *stream, void *graph, const void *dependencies,
					      const void *edges, size_t n, int mode)
{
	return begin_to_graph(ENTRY_cuStreamBeginCaptureToGraph, stream, graph, dependencies, edges, n, mode,
			      false);
}

CUresult replaced_cuStreamBeginCaptureToGraph_ptsz(void *stream, void *graph, const void *dependencies,
						   const void *edges, size_t n, int mode)
{
	return begin_to_graph(ENTRY_cuStreamBeginCaptureToGraph_ptsz, stream, graph, dependencies, edges, n,
			      mode, true);
}

CUresult replaced_cuStreamEndCapture(void *stream, void **graph)
{
	return end(ENTRY_cuStreamEndCapture, stream, graph, false);
}

CUresult replaced_cuStreamEndCapture_ptsz(void *stream, void **graph)
{
	return end(ENTRY_cuStreamEndCapture_ptsz, stream, graph, true);
}

CUresult replaced_cuStreamDestroy(void *stream)
{
	return destroy(ENTRY_cuStreamDestroy, stream);
}

CUresult replaced_cuStreamDestroy_v2(void *stream)
{
	return destroy(ENTRY_cuStreamDestroy_v2, stream);
}
