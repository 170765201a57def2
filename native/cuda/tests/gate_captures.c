// SPDX-License-Identifier: Apache-2.0
/* The gate is closed between stream captures, and one that failed is over when the driver says so. */
#include "gate_test.h"

int cuStreamBeginCapture_v2(void *stream, int mode);
int cuStreamBeginCapture_v2_ptsz(void *stream, int mode);
int cuStreamDestroy_v2(void *stream);
int cuStreamEndCapture(void *stream, void **graph);
int cuStreamEndCapture_ptsz(void *stream, void **graph);

#define STREAM ((void *)0x1000)
#define OTHER ((void *)0x2000)
#define PER_THREAD ((void *)2)
#define CONTEXT ((void *)0x3000)

static atomic_int in_begin, may_begin = 1;
static atomic_int capturing; /* what the driver says of every stream */
static atomic_int begin_result, end_result;

static int on_call(const char *name, void *first, void *second, void *third)
{
	if (!strncmp(name, "cuStreamBegin", 13)) {
		atomic_store(&in_begin, 1);
		while (!atomic_load(&may_begin))
			nap();
		atomic_store(&capturing, !atomic_load(&begin_result));
		return atomic_load(&begin_result);
	}
	if (!strncmp(name, "cuStreamEnd", 11)) {
		if (atomic_load(&end_result) != 908) /* CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD */
			atomic_store(&capturing, 0);
		return atomic_load(&end_result);
	}
	if (!strcmp(name, "cuStreamIsCapturing"))
		*(int *)second = atomic_load(&capturing);
	if (!strcmp(name, "cuStreamGetCtx"))
		*(void **)second = CONTEXT;
	return 0;
}

static void begin_capture(void *stream)
{
	CHECK(cuStreamBeginCapture_v2(stream, 0) == 0, "begin");
}

static void end_capture(void *stream)
{
	void *graph;

	CHECK(cuStreamEndCapture(stream, &graph) == 0, "end");
}

static void must_not_close(unsigned int captures)
{
	struct gate_busy busy;

	CHECK(!gate_close(in(SHORT), &busy), "closed in a capture");
	CHECK(busy.captures == captures && busy.inside == 0, "%u captures", busy.captures);
	CHECK(gate_state() == GATE_OPEN, "state");
}

static void closes(void)
{
	must_close();
	gate_open();
}

static void it_is_not_closed_in_a_capture(void)
{
	begin_capture(STREAM);
	must_not_close(1);
	begin_capture(OTHER);
	must_not_close(2);
	end_capture(STREAM);
	must_not_close(1);
	end_capture(OTHER);
	closes();
}

static void one_that_did_not_begin_is_none(void)
{
	atomic_store(&begin_result, 400);
	CHECK(cuStreamBeginCapture_v2(STREAM, 0) == 400, "begin");
	atomic_store(&begin_result, 0);
	closes();
}

static void one_that_the_driver_has_not_ended_goes_on(void)
{
	void *graph;

	begin_capture(STREAM);
	atomic_store(&end_result, 908);
	CHECK(cuStreamEndCapture(STREAM, &graph) == 908, "end");
	must_not_close(1);
	atomic_store(&end_result, 901); /* CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ends it */
	CHECK(cuStreamEndCapture(STREAM, &graph) == 901, "end");
	atomic_store(&end_result, 0);
	closes();
}

static void ending_none_counts_nothing(void)
{
	end_capture(STREAM);
	begin_capture(STREAM);
	end_capture(OTHER);
	must_not_close(1);
	end_capture(STREAM);
	closes();
}

static void it_ends_with_its_stream_and_its_context(void)
{
	begin_capture(STREAM);
	cuStreamDestroy_v2(OTHER);
	must_not_close(1);
	cuStreamDestroy_v2(STREAM);
	closes();
	begin_capture(STREAM);
	gate_context_gone(STREAM);
	must_not_close(1);
	gate_context_gone(CONTEXT);
	closes();
}

static void the_stream_of_a_thread_has_two_names(void)
{
	void *graph;

	CHECK(cuStreamBeginCapture_v2_ptsz(NULL, 0) == 0, "begin");
	must_not_close(1);
	end_capture(PER_THREAD);
	closes();
	begin_capture(PER_THREAD);
	CHECK(cuStreamEndCapture_ptsz(NULL, &graph) == 0, "end");
	closes();
}

static void *end_later(void *stream)
{
	STAYS_FALSE(gate_state() != GATE_OPEN);
	end_capture(stream);
	return NULL;
}

static void its_end_is_waited_for(void)
{
	pthread_t thread;

	begin_capture(STREAM);
	thread = begin(end_later, STREAM);
	must_close();
	gate_open();
	pthread_join(thread, NULL);
}

static _Atomic uint32_t word;

static void *end_now(void *stream)
{
	end_capture(stream);
	return NULL;
}

/* A process that was frozen in a capture, and thawed with the gate closing: its thread may finish. */
static void one_that_was_held_is_let_go(void)
{
	pthread_t thread;

	gate_use_word(&word);
	begin_capture(STREAM);
	atomic_store(&word, GATE_CLOSING);
	thread = begin(end_now, STREAM);
	STAYS_FALSE(!atomic_load(&capturing));
	must_close();
	CHECK(!atomic_load(&capturing), "closed in a capture");
	gate_open();
	pthread_join(thread, NULL);
	gate_use_word(NULL);
}

static void *begin_now(void *stream)
{
	begin_capture(stream);
	return NULL;
}

static void *close_for_a_while(void *argument)
{
	must_not_close(1);
	return NULL;
}

/* Nothing was being captured when closing began, and a call was inside that began to. */
static void one_that_begins_meanwhile_counts(void)
{
	pthread_t capturer, closer;

	atomic_store(&in_begin, 0);
	atomic_store(&may_begin, 0);
	capturer = begin(begin_now, STREAM);
	WAIT_FOR(atomic_load(&in_begin));
	closer = begin(close_for_a_while, NULL);
	WAIT_FOR(gate_state() == GATE_CLOSING);
	atomic_store(&may_begin, 1);
	pthread_join(capturer, NULL);
	pthread_join(closer, NULL);
	end_capture(STREAM);
	closes();
}

static void a_child_has_none(void)
{
	pid_t child;
	int status;

	begin_capture(STREAM);
	child = fork();
	if (child == 0) {
		closes();
		_exit(42);
	}
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 42,
	      "status %x", status);
	must_not_close(1);
	end_capture(STREAM);
}

static void any_number_may_be_in_progress(void)
{
	for (long i = 1; i <= 1000; i++)
		begin_capture((void *)(i << 12));
	must_not_close(1000);
	for (long i = 1; i <= 1000; i++)
		end_capture((void *)(i << 12));
	closes();
}

int main(int argc, char **argv)
{
	stub_says(argv, on_call);
	it_is_not_closed_in_a_capture();
	one_that_did_not_begin_is_none();
	one_that_the_driver_has_not_ended_goes_on();
	ending_none_counts_nothing();
	it_ends_with_its_stream_and_its_context();
	the_stream_of_a_thread_has_two_names();
	its_end_is_waited_for();
	one_that_was_held_is_let_go();
	one_that_begins_meanwhile_counts();
	a_child_has_none();
	any_number_may_be_in_progress();
	return 0;
}
