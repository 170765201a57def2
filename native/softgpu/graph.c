// SPDX-License-Identifier: Apache-2.0
/* Stream capture and graphs: work that a capturing stream would do is written down, and done in that
 * order at each launch. One stream a graph: there are no branches, and no nodes made by hand. */
#include "softgpu.h"

#include <stdlib.h>

#define MAGIC_GRAPH 0xc0de0010
#define MAGIC_EXEC 0xc0de0011

struct node {
	struct node *next;
	struct work work;
};

/* A graph, and what was made of it to be launched. */
struct graph {
	uint32_t magic;
	bool invalid; /* something happened while it was captured that cannot be part of it */
	CUstreamCaptureMode mode;
	pthread_t thread; /* that captures it */
	struct node *first, **end;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint captures, global_captures; /* going on, of every thread */
static __thread unsigned own_captures;	      /* of this thread, not relaxed */
static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static struct graph *make(uint32_t magic)
{
	struct graph *graph = calloc(1, sizeof(*graph));

	if (graph) {
		graph->magic = magic;
		graph->end = &graph->first;
	}
	return graph;
}

static bool append(struct graph *graph, const struct work *work)
{
	struct node *node = calloc(1, sizeof(*node));

	if (!node)
		return false;
	node->work = *work;
	*graph->end = node;
	graph->end = &node->next;
	return true;
}

static void drop(struct graph *graph)
{
	for (struct node *node = graph->first, *next; node; node = next) {
		next = node->next;
		free(node);
	}
	graph->magic = 0;
	free(graph);
}

static CUresult refuse(struct graph *graph)
{
	graph->invalid = true;
	return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

/* In the place of a submission to a stream that is capturing. What the program keeps in memory of its
 * own would have to live as long as the graph: it is refused. */
CUresult graph_record(struct stream *s, const struct work *work)
{
	struct graph *graph = atomic_load(&s->capture);
	CUresult result = CUDA_SUCCESS;

	pthread_mutex_lock(&lock);
	if (graph->invalid)
		result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	else if (work->owns_argument)
		result = refuse(graph);
	else if (!append(graph, work))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_unlock(&lock);
	return result;
}

/* For calls that wait for a stream: one that captures does nothing that could be waited for. */
CUresult graph_waits(struct stream *s)
{
	struct graph *graph = atomic_load(&s->capture);

	return graph ? refuse(graph) : CUDA_SUCCESS;
}

/* For calls that could wait for the device: not while this thread captures, or any does globally, unless the
 * thread has said that it knows better. They spoil every capture that they could have been part of. */
CUresult graph_unsafe(struct context *ctx)
{
	struct graph *graph;

	if (!atomic_load(&captures) || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_SUCCESS;
	if (!own_captures && !(thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && atomic_load(&global_captures)))
		return CUDA_SUCCESS;
	for (struct stream *s = ctx->streams; s; s = s->next) {
		graph = atomic_load(&s->capture);
		if (graph && graph->mode != CU_STREAM_CAPTURE_MODE_RELAXED)
			graph->invalid = true;
	}
	return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

static void count(const struct graph *graph, int by)
{
	atomic_fetch_add(&captures, by);
	if (graph->mode == CU_STREAM_CAPTURE_MODE_GLOBAL)
		atomic_fetch_add(&global_captures, by);
	if (graph->mode != CU_STREAM_CAPTURE_MODE_RELAXED)
		own_captures += by;
}

CUDA_API(cuStreamBeginCapture_v2, CUstream handle, CUstreamCaptureMode mode)
{
	ENTER_CONTEXT(ctx);
	struct graph *graph;
	struct stream *s;
	CUresult result = stream_resolve(ctx, handle, &s);

	if (result)
		return result;
	if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	if (s == ctx->legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (atomic_load(&s->capture))
		return CUDA_ERROR_ILLEGAL_STATE;
	graph = make(MAGIC_GRAPH);
	if (!graph)
		return CUDA_ERROR_OUT_OF_MEMORY;
	graph->mode = mode;
	graph->thread = pthread_self();
	count(graph, 1);
	atomic_store(&s->capture, graph);
	return CUDA_SUCCESS;
}

CUDA_API(cuStreamEndCapture, CUstream handle, CUgraph *out)
{
	ENTER_CONTEXT(ctx);
	struct graph *graph;
	struct stream *s;
	CUresult result = stream_resolve(ctx, handle, &s);

	if (result)
		return result;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = NULL;
	graph = atomic_load(&s->capture);
	if (!graph)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (graph->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !pthread_equal(graph->thread, pthread_self()))
		return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	count(graph, -1);
	atomic_store(&s->capture, NULL);
	if (graph->invalid) {
		drop(graph);
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	}
	*out = (CUgraph)graph;
	return CUDA_SUCCESS;
}

CUDA_API(cuStreamIsCapturing, CUstream handle, CUstreamCaptureStatus *status)
{
	ENTER_CONTEXT(ctx);
	struct graph *graph;
	struct stream *s;
	CUresult result = stream_resolve(ctx, handle, &s);

	if (result)
		return result;
	if (!status)
		return CUDA_ERROR_INVALID_VALUE;
	graph = atomic_load(&s->capture);
	*status = !graph	   ? CU_STREAM_CAPTURE_STATUS_NONE
		  : graph->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
				   : CU_STREAM_CAPTURE_STATUS_ACTIVE;
	return CUDA_SUCCESS;
}

CUDA_API(cuThreadExchangeStreamCaptureMode, CUstreamCaptureMode *mode)
{
	CUstreamCaptureMode old = thread_mode;

	if (!mode || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	thread_mode = *mode;
	*mode = old;
	return CUDA_SUCCESS;
}

static struct graph *find(const void *handle, uint32_t magic)
{
	struct graph *graph = (struct graph *)handle;

	return graph && graph->magic == magic ? graph : NULL;
}

CUDA_API(cuGraphInstantiateWithFlags, CUgraphExec *out, CUgraph handle, unsigned long long flags)
{
	ENTER_CONTEXT(ctx);
	struct graph *graph = find(handle, MAGIC_GRAPH), *exec;

	if (!out || !graph)
		return CUDA_ERROR_INVALID_VALUE;
	exec = make(MAGIC_EXEC);
	for (struct node *node = graph->first; exec && node; node = node->next) {
		if (!append(exec, &node->work)) {
			drop(exec);
			exec = NULL;
			break;
		}
	}
	if (!exec)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*out = (CUgraphExec)exec;
	return CUDA_SUCCESS;
}

CUDA_API(cuGraphLaunch, CUgraphExec handle, CUstream stream)
{
	ENTER_CONTEXT(ctx);
	struct graph *exec = find(handle, MAGIC_EXEC);
	struct stream *s;
	CUresult result;

	if (!exec)
		return CUDA_ERROR_INVALID_VALUE;
	result = stream_resolve(ctx, stream, &s);
	for (struct node *node = exec->first; !result && node; node = node->next)
		result = stream_submit(s, &node->work, NULL);
	return result;
}

static CUresult destroy(const void *handle, uint32_t magic)
{
	struct graph *graph = find(handle, magic);

	if (!graph)
		return CUDA_ERROR_INVALID_VALUE;
	drop(graph);
	return CUDA_SUCCESS;
}

/* What is launched already has copies of the work. */
CUDA_API(cuGraphExecDestroy, CUgraphExec exec)
{
	ENTER();
	return destroy(exec, MAGIC_EXEC);
}

CUDA_API(cuGraphDestroy, CUgraph graph)
{
	ENTER();
	return destroy(graph, MAGIC_GRAPH);
}

CUDA_API(cuStreamBeginCapture_v2_ptsz, CUstream stream, CUstreamCaptureMode mode)
{
	return cuStreamBeginCapture_v2(per_thread(stream), mode);
}

CUDA_API(cuStreamEndCapture_ptsz, CUstream stream, CUgraph *graph)
{
	return cuStreamEndCapture(per_thread(stream), graph);
}

CUDA_API(cuStreamIsCapturing_ptsz, CUstream stream, CUstreamCaptureStatus *status)
{
	return cuStreamIsCapturing(per_thread(stream), status);
}

CUDA_API(cuGraphLaunch_ptsz, CUgraphExec exec, CUstream stream)
{
	return cuGraphLaunch(exec, per_thread(stream));
}
