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
	_Atomic uint64_t recorded; /* generation asked for */
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

/* Two streams may be at work on two generations: the later one stays. */
static CUresult run_record(struct work *work)
{
	struct event *event = work->event.event;
	uint64_t generation = work->event.generation, old = atomic_load(event->reached);

	atomic_store(&event->time, now());
	while (old < generation && !atomic_compare_exchange_weak(event->reached, &old, generation))
		;
	ticks_reach(&event->finished, generation);
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
	work.event.generation = atomic_fetch_add(&event->recorded, 1) + 1;
	return stream_submit(s, &work, NULL);
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
	return reached(event, atomic_load(&event->recorded)) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUDA_API(cuEventSynchronize, CUevent handle)
{
	ENTER();
	struct event *event = find(handle);

	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	wait_for(event, atomic_load(&event->recorded));
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
	if (atomic_load(&a->recorded) == a->base || atomic_load(&b->recorded) == b->base)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!reached(a, a->recorded) || !reached(b, b->recorded))
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
	work.event.generation = atomic_load(&event->recorded);
	return stream_submit(s, &work, NULL);
}

CUDA_API(cuStreamWaitEvent_ptsz, CUstream stream, CUevent event, unsigned int flags)
{
	return cuStreamWaitEvent(per_thread(stream), event, flags);
}
