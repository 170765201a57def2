// SPDX-License-Identifier: Apache-2.0
/* Events: generations. Recording asks for the next one, the stream reaches it. An event is never
 * given back to malloc, so that a stale handle is recognised. */
#include "softgpu.h"

#include <stdlib.h>
#include <time.h>

#define MAGIC 0xc0de0003

struct event {
	uint32_t magic;
	struct event *next;
	unsigned flags;
	struct context *ctx;
	_Atomic uint64_t taken;	   /* last generation given to a record */
	_Atomic uint64_t recorded; /* last generation in a queue */
	notifier *reached;	   /* generation, for those who poll */
	struct ticks finished;	   /* the same, for those who wait */
	_Atomic uint64_t time;	   /* ns, of the last generation reached */
	uint64_t base;		   /* first generation of this life */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct event *vacant;

static struct event *find(CUevent handle)
{
	struct event *event = (struct event *)handle;

	return event && event->magic == MAGIC ? event : NULL;
}

static bool reached(struct event *event, uint64_t generation)
{
	return atomic_load(event->reached) >= generation;
}

/* What the last record of this life asked for; 0, which is always reached, if there was none. */
static uint64_t asked(struct event *event)
{
	uint64_t recorded = atomic_load(&event->recorded);

	return recorded == event->base ? 0 : recorded;
}

static void wait_for(struct event *event, uint64_t generation)
{
	if (!reached(event, generation))
		ticks_wait(&event->finished, generation);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void raise_to(_Atomic uint64_t *value, uint64_t least)
{
	uint64_t old = atomic_load(value);

	while (old < least && !atomic_compare_exchange_weak(value, &old, least))
		;
}

/* Two streams may be at work on two generations: the later one stays. */
static CUresult run_record(struct work *work)
{
	struct event *event = work->event.event;

	atomic_store(&event->time, now());
	raise_to(event->reached, work->event.generation);
	ticks_reach(&event->finished, work->event.generation);
	return CUDA_SUCCESS;
}

static CUresult run_wait(struct work *work)
{
	wait_for(work->event.event, work->event.generation);
	return CUDA_SUCCESS;
}

static struct event *make(void)
{
	struct event *event = vacant;

	if (event) {
		vacant = event->next;
		return event;
	}
	event = calloc(1, sizeof(*event));
	if (event && !(event->reached = notify_get())) {
		free(event);
		return NULL;
	}
	return event;
}

CUDA_API(cuEventCreate, CUevent *handle, unsigned int flags)
{
	ENTER_CONTEXT(ctx);
	struct event *event;

	if (!handle || (flags & ~7u))
		return CUDA_ERROR_INVALID_VALUE;
	if ((flags & CU_EVENT_INTERPROCESS) && !(flags & CU_EVENT_DISABLE_TIMING))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	event = make();
	pthread_mutex_unlock(&lock);
	if (!event)
		return CUDA_ERROR_OUT_OF_MEMORY;
	event->flags = flags;
	event->ctx = ctx;
	event->base = atomic_load(&event->recorded);
	event->magic = MAGIC;
	*handle = (CUevent)event;
	return CUDA_SUCCESS;
}

CUDA_API(cuEventDestroy_v2, CUevent handle)
{
	ENTER_CONTEXT(ctx);
	struct event *event = find(handle);

	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&lock);
	event->magic = 0;
	event->next = vacant;
	vacant = event;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUDA_API(cuEventRecordWithFlags, CUevent handle, CUstream stream, unsigned int flags)
{
	ENTER_CONTEXT(ctx);
	struct work work = { .run = run_record };
	struct event *event = find(handle);
	struct stream *s;
	CUresult result;

	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	if (flags > 1)
		return CUDA_ERROR_INVALID_VALUE;
	result = stream_resolve(ctx, stream, &s);
	if (result)
		return result;
	work.event.event = event;
	work.event.generation = atomic_fetch_add(&event->taken, 1) + 1;
	result = stream_submit(s, &work, NULL);
	/* Only now: others may wait for nothing that is not in its queue yet, or two streams could wait
	 * for each other. */
	if (!result)
		raise_to(&event->recorded, work.event.generation);
	return result;
}

CUDA_API(cuEventRecordWithFlags_ptsz, CUevent event, CUstream stream, unsigned int flags)
{
	return cuEventRecordWithFlags(event, per_thread(stream), flags);
}

CUDA_API(cuEventRecord, CUevent event, CUstream stream)
{
	return cuEventRecordWithFlags(event, stream, 0);
}

CUDA_API(cuEventRecord_ptsz, CUevent event, CUstream stream)
{
	return cuEventRecordWithFlags(event, per_thread(stream), 0);
}

/* Polls: see notify.c. */
CUDA_API(cuEventQuery, CUevent handle)
{
	struct event *event;
	CUresult result = gate_peek();

	if (result)
		return result;
	event = find(handle);
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	result = atomic_load(&event->ctx->error);
	if (result)
		return result;
	return reached(event, asked(event)) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUDA_API(cuEventSynchronize, CUevent handle)
{
	ENTER();
	struct event *event = find(handle);

	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	wait_for(event, asked(event));
	return atomic_load(&event->ctx->error);
}

CUDA_API(cuEventElapsedTime_v2, float *ms, CUevent from, CUevent to)
{
	ENTER();
	struct event *a = find(from), *b = find(to);

	if (!ms)
		return CUDA_ERROR_INVALID_VALUE;
	if (!a || !b || ((a->flags | b->flags) & CU_EVENT_DISABLE_TIMING))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!asked(a) || !asked(b))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!reached(a, asked(a)) || !reached(b, asked(b)))
		return CUDA_ERROR_NOT_READY;
	*ms = (float)((double)(int64_t)(b->time - a->time) / 1e6);
	return CUDA_SUCCESS;
}

CUDA_API(cuEventElapsedTime, float *ms, CUevent from, CUevent to)
{
	return cuEventElapsedTime_v2(ms, from, to);
}

CUDA_API(cuStreamWaitEvent, CUstream stream, CUevent handle, unsigned int flags)
{
	ENTER_CONTEXT(ctx);
	struct work work = { .run = run_wait };
	struct event *event = find(handle);
	struct stream *s;
	CUresult result;

	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	if (flags > 1)
		return CUDA_ERROR_INVALID_VALUE;
	result = stream_resolve(ctx, stream, &s);
	if (result)
		return result;
	work.event.event = event;
	work.event.generation = asked(event);
	return stream_submit(s, &work, NULL);
}

CUDA_API(cuStreamWaitEvent_ptsz, CUstream stream, CUevent event, unsigned int flags)
{
	return cuStreamWaitEvent(per_thread(stream), event, flags);
}
