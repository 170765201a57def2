// SPDX-License-Identifier: Apache-2.0
/* Streams: a queue and a worker thread each. A stream is never given back to malloc, it becomes
 * another one; so walking a context's streams needs no lock. */
#include "softgpu.h"

#include <stdlib.h>

#define MAGIC 0xc0de0002

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t thread_key;
static pthread_once_t thread_once = PTHREAD_ONCE_INIT;

/* The default streams of a thread, one a context. */
struct thread_stream {
	struct thread_stream *next;
	struct context *ctx;
	struct stream *stream;
};

static struct stream *take_vacant(struct context *ctx)
{
	for (struct stream *s = ctx->streams; s; s = s->next) {
		if (atomic_exchange(&s->vacant, false))
			return s;
	}
	return NULL;
}

static struct stream *make_new(struct context *ctx)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->done = notify_get();
	if (!s->done) {
		free(s);
		return NULL;
	}
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->added, NULL);
	s->ctx = ctx;
	s->next = ctx->streams;
	atomic_store(&ctx->streams, s);
	return s;
}

struct stream *stream_make(struct context *ctx, unsigned flags, int priority, bool hidden)
{
	static uint64_t last_id;
	struct stream *s;

	pthread_mutex_lock(&lock);
	s = take_vacant(ctx);
	if (!s)
		s = make_new(ctx);
	if (s) {
		s->flags = flags;
		s->priority = priority;
		s->hidden = hidden;
		s->leaving = false;
		s->id = ++last_id;
		s->magic = MAGIC;
	}
	pthread_mutex_unlock(&lock);
	return s;
}

/* Work that was submitted is still done. */
void stream_drop(struct stream *s)
{
	pthread_mutex_lock(&s->lock);
	s->magic = 0;
	s->leaving = true;
	if (s->worker)
		pthread_cond_signal(&s->added);
	else
		atomic_store(&s->vacant, true);
	pthread_mutex_unlock(&s->lock);
}

static void leave_thread(void *list)
{
	for (struct thread_stream *t = list, *next; t; t = next) {
		next = t->next;
		if (t->stream->magic == MAGIC && t->ctx->active)
			stream_drop(t->stream);
		free(t);
	}
}

static void make_key(void)
{
	pthread_key_create(&thread_key, leave_thread);
}

static struct stream *of_thread(struct context *ctx)
{
	struct thread_stream *list, *t;

	pthread_once(&thread_once, make_key);
	list = pthread_getspecific(thread_key);
	for (t = list; t; t = t->next) {
		if (t->ctx == ctx && t->stream->magic == MAGIC)
			return t->stream;
	}
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->ctx = ctx;
	t->stream = stream_make(ctx, 0, 0, true);
	if (!t->stream) {
		free(t);
		return NULL;
	}
	t->next = list;
	pthread_setspecific(thread_key, t);
	return t->stream;
}

CUresult stream_resolve(struct context *ctx, CUstream handle, struct stream **stream)
{
	struct stream *s;

	if (!handle || handle == CU_STREAM_LEGACY) {
		*stream = ctx->legacy;
		return CUDA_SUCCESS;
	}
	if (handle == CU_STREAM_PER_THREAD) {
		*stream = of_thread(ctx);
		return *stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	}
	for (s = ctx->streams; s; s = s->next) {
		if ((CUstream)s == handle && s->magic == MAGIC && !s->hidden) {
			*stream = s;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_HANDLE;
}

bool stream_idle(struct stream *s)
{
	return atomic_load(s->done) >= atomic_load(&s->submitted);
}

void stream_wait(struct stream *s, uint64_t sequence)
{
	if (atomic_load(s->done) < sequence)
		ticks_wait(&s->finished, sequence);
}
