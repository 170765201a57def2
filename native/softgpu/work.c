// SPDX-License-Identifier: Apache-2.0
/* Work on its way to a stream, and the thread that does it. */
#include "softgpu.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>

static void finish(struct stream *s, struct work *work, CUresult result)
{
	CUresult none = CUDA_SUCCESS;
	uint64_t sequence = work->sequence;

	if (result)
		atomic_compare_exchange_strong(&s->ctx->error, &none, result);
	if (work->owns_argument)
		free(work->argument);
	free(work);
	atomic_store(s->done, sequence);
	ticks_reach(&s->finished, sequence);
	/* Last: from here on a checkpoint may take the notifiers away. */
	atomic_fetch_sub(&work_pending, 1);
}

static struct work *next(struct stream *s)
{
	struct work *work;

	pthread_mutex_lock(&s->lock);
	while (!s->head && !s->leaving)
		pthread_cond_wait(&s->added, &s->lock);
	work = s->head;
	if (work) {
		s->head = work->next;
		if (!s->head)
			s->tail = NULL;
	} else {
		s->worker = false;
		atomic_store(&s->vacant, true);
	}
	pthread_mutex_unlock(&s->lock);
	return work;
}

static void *worker(void *argument)
{
	struct stream *s = argument;
	struct work *work;

	/* A name of the driver's: who holds the program's threads lets these run. */
	prctl(PR_SET_NAME, "cuda-stream");
	while ((work = next(s)))
		finish(s, work, work->run(work));
	return NULL;
}

/* Signals of the program go to its own threads. Called with the stream's lock held. */
static bool start_worker(struct stream *s)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, old;
	int error;

	if (s->worker)
		return true;
	sigfillset(&all);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&thread, &attributes, worker, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attributes);
	s->worker = !error;
	return s->worker;
}

static CUresult append(struct stream *s, const struct work *template, uint64_t *sequence)
{
	struct work *work = malloc(sizeof(*work));
	bool started;

	if (!work)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*work = *template;
	work->next = NULL;
	work->stream = s;
	pthread_mutex_lock(&s->lock);
	started = start_worker(s);
	if (started) {
		atomic_fetch_add(&work_pending, 1);
		work->sequence = atomic_fetch_add(&s->submitted, 1) + 1;
		if (sequence)
			*sequence = work->sequence;
		if (s->tail)
			s->tail->next = work;
		else
			s->head = work;
		s->tail = work;
		pthread_cond_signal(&s->added);
	}
	pthread_mutex_unlock(&s->lock);
	if (!started)
		free(work);
	return started ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

static CUresult run_wait(struct work *work)
{
	stream_wait(work->wait.stream, work->wait.sequence);
	return CUDA_SUCCESS;
}

static CUresult after(struct stream *s, struct stream *other)
{
	struct work wait = { .run = run_wait };

	if (stream_idle(other))
		return CUDA_SUCCESS;
	wait.wait.stream = other;
	wait.wait.sequence = atomic_load(&other->submitted);
	return append(s, &wait, NULL);
}

/* The legacy default stream waits for every blocking stream of its context, and they for it. */
static CUresult order(struct stream *s)
{
	struct context *ctx = s->ctx;
	CUresult result = CUDA_SUCCESS;

	if (s != ctx->legacy)
		return s->flags & CU_STREAM_NON_BLOCKING ? CUDA_SUCCESS : after(s, ctx->legacy);
	for (struct stream *other = ctx->streams; other && !result; other = other->next) {
		if (other != s && !(other->flags & CU_STREAM_NON_BLOCKING))
			result = after(s, other);
	}
	return result;
}

/* The work is copied. On failure an owned argument stays with the caller. */
CUresult stream_submit(struct stream *s, const struct work *work, uint64_t *sequence)
{
	CUresult result;

	if (atomic_load(&s->capture))
		return graph_record(s, work);
	result = order(s);
	return result ? result : append(s, work, sequence);
}

/* Submit and wait. */
CUresult stream_run(struct stream *s, const struct work *work)
{
	uint64_t sequence;
	CUresult result = graph_waits(s);

	if (!result)
		result = graph_unsafe(s->ctx);
	if (!result)
		result = stream_submit(s, work, &sequence);
	if (result)
		return result;
	stream_wait(s, sequence);
	return atomic_load(&s->ctx->error);
}
