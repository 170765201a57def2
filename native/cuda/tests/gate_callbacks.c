// SPDX-License-Identifier: Apache-2.0
/* What the driver calls in the middle of a stream gets its calls through until the streams are empty. */
#include "gate_test.h"

int cuGraphHostNodeGetParams(void *node, void *params);
int cuLaunchHostFunc(void *stream, void (*function)(void *), void *argument);
int cuStreamAddCallback(void *stream, void (*function)(void *, int, void *), void *argument,
			unsigned int flags);
int cuStreamBeginCapture_v2(void *stream, int mode);
int cuStreamEndCapture(void *stream, void **graph);

#define STREAM ((void *)0x1000)

/* The stream of this driver holds one function. */
static struct {
	void (*host)(void *);
	void (*callback)(void *, int, void *);
	void *argument;
} given;

static atomic_int queries, result, capturing, inside, may_leave;

static int on_call(const char *name, void *first, void *second, void *third)
{
	if (!strcmp(name, "cuEventQuery"))
		atomic_fetch_add(&queries, 1);
	if (!strcmp(name, "cuStreamSynchronize")) {
		atomic_store(&inside, 1);
		while (!atomic_load(&may_leave))
			nap();
		atomic_store(&inside, 0);
	}
	if (!strncmp(name, "cuStreamBegin", 13) || !strncmp(name, "cuStreamEnd", 11))
		atomic_store(&capturing, !strncmp(name, "cuStreamBegin", 13));
	if (!strcmp(name, "cuStreamIsCapturing"))
		*(int *)second = atomic_load(&capturing);
	if (!strcmp(name, "cuLaunchHostFunc") || !strcmp(name, "cuStreamAddCallback")) {
		given.host = second;
		given.callback = second;
		given.argument = third;
		return atomic_load(&result);
	}
	if (!strcmp(name, "cuGraphHostNodeGetParams")) {
		((void **)second)[0] = (void *)given.host;
		((void **)second)[1] = given.argument;
	}
	return 0;
}

static void *run_host(void *argument)
{
	given.host(given.argument);
	return NULL;
}

static void *run_callback(void *argument)
{
	given.callback(STREAM, 7, given.argument);
	return NULL;
}

static atomic_int started, may_query, ended;

static void query(void *argument)
{
	CHECK(argument == &started, "its argument");
	atomic_store(&started, 1);
	while (!atomic_load(&may_query))
		nap();
	cuEventQuery(NULL);
	atomic_store(&ended, 1);
}

static void query_with_status(void *stream, int status, void *argument)
{
	CHECK(stream == STREAM && status == 7, "its arguments");
	query(argument);
}

static void *just_query(void *event)
{
	cuEventQuery(event);
	return NULL;
}

static void reset(void)
{
	atomic_store(&started, 0);
	atomic_store(&may_query, 0);
	atomic_store(&ended, 0);
	atomic_store(&queries, 0);
}

/* Closing does not wait for it; sealing, after its stream was drained, has not to. */
static void its_calls_pass_while_the_gate_is_closing(void *(*run)(void *))
{
	struct gate_busy busy;
	pthread_t driver, program;

	driver = begin(run, NULL);
	WAIT_FOR(atomic_load(&started));
	CHECK(gate_close(in(LONG), &busy), "close");
	program = begin(just_query, NULL);
	STAYS_FALSE(atomic_load(&queries));
	atomic_store(&may_query, 1);
	pthread_join(driver, NULL); /* the drain */
	CHECK(atomic_load(&queries) == 1 && atomic_load(&ended), "only the function has asked");
	CHECK(gate_seal(in(LONG), &busy), "seal");
	gate_open();
	pthread_join(program, NULL);
}

static void a_host_function(void)
{
	reset();
	CHECK(cuLaunchHostFunc(STREAM, query, &started) == 0, "launch");
	its_calls_pass_while_the_gate_is_closing(run_host);
}

static void a_stream_callback(void)
{
	reset();
	CHECK(cuStreamAddCallback(STREAM, query_with_status, &started, 0) == 0, "add");
	its_calls_pass_while_the_gate_is_closing(run_callback);
}

static void its_calls_wait_when_the_gate_is_closed(void)
{
	pthread_t driver;

	reset();
	CHECK(cuLaunchHostFunc(STREAM, query, &started) == 0, "launch");
	driver = begin(run_host, NULL);
	WAIT_FOR(atomic_load(&started));
	must_close();
	atomic_store(&may_query, 1);
	STAYS_FALSE(atomic_load(&queries));
	gate_open();
	pthread_join(driver, NULL);
}

static void synchronize(void *argument)
{
	cuStreamSynchronize(argument);
}

/* What it is in the middle of is the drain's to wait for, and not over when the gate is sealed. */
static void a_call_of_it_is_waited_for_by_sealing_alone(void)
{
	struct gate_busy busy;
	pthread_t driver;

	atomic_store(&may_leave, 0);
	CHECK(cuLaunchHostFunc(STREAM, synchronize, STREAM) == 0, "launch");
	driver = begin(run_host, NULL);
	WAIT_FOR(atomic_load(&inside));
	CHECK(gate_close(in(LONG), &busy), "close");
	CHECK(!gate_seal(in(SHORT), &busy) && busy.inside == 1, "sealed with a call inside");
	CHECK(gate_state() == GATE_OPEN, "it is open again");
	CHECK(gate_close(in(LONG), &busy), "close");
	atomic_store(&may_leave, 1);
	CHECK(gate_seal(in(LONG), &busy) && !atomic_load(&inside), "seal");
	gate_open();
	pthread_join(driver, NULL);
}

/* The thread of the driver is one like any other when the function is over. */
static void *run_host_and_query(void *argument)
{
	struct gate_busy busy;

	run_host(NULL);
	CHECK(gate_self != &gate_nobody && !atomic_load(&gate_self->callbacks), "it is over");
	CHECK(gate_close(in(LONG), &busy), "close");
	pthread_t thread = begin(just_query, NULL);
	STAYS_FALSE(atomic_load(&queries) > 1);
	gate_open();
	pthread_join(thread, NULL);
	return NULL;
}

static void it_ends_with_the_function(void)
{
	reset();
	atomic_store(&may_query, 1);
	CHECK(cuLaunchHostFunc(STREAM, query, &started) == 0, "launch");
	pthread_join(begin(run_host_and_query, NULL), NULL);
}

static void note_down(void *argument)
{
	++*(int *)argument;
}

static void the_place_of_one_that_ran_is_used_again(void)
{
	int ran = 0;
	void *first;

	CHECK(cuLaunchHostFunc(STREAM, note_down, &ran) == 0, "launch");
	first = given.argument;
	run_host(NULL);
	for (int i = 0; i < 10000; i++) {
		CHECK(cuLaunchHostFunc(STREAM, note_down, &ran) == 0, "launch");
		CHECK(given.argument == first, "launch %d", i);
		run_host(NULL);
	}
	CHECK(ran == 10001, "%d", ran);
}

static void the_place_of_one_that_was_refused_is_used_again(void)
{
	int ran = 0;
	void *first;

	atomic_store(&result, 400);
	CHECK(cuLaunchHostFunc(STREAM, note_down, &ran) == 400, "launch");
	first = given.argument;
	CHECK(cuStreamAddCallback(STREAM, query_with_status, &ran, 0) == 400, "add");
	CHECK(given.argument == first, "add");
	atomic_store(&result, 0);
}

static void many_may_be_waiting(void)
{
	enum { MANY = 1000 };
	struct {
		void (*host)(void *);
		void *argument;
	} all[MANY];
	int ran = 0;

	for (int i = 0; i < MANY; i++) {
		CHECK(cuLaunchHostFunc(STREAM, note_down, &ran) == 0, "launch");
		all[i].host = given.host;
		all[i].argument = given.argument;
	}
	for (int i = 0; i < MANY; i++)
		all[i].host(all[i].argument);
	CHECK(ran == MANY, "%d", ran);
}

/* Whatever the driver says to a function that is none, it says. */
static void no_function_is_handed_on(void)
{
	CHECK(cuLaunchHostFunc(STREAM, NULL, &started) == 0, "launch");
	CHECK(!given.host && given.argument == &started, "as it was");
}

static void one_more_in_a_graph(void *first)
{
	void *graph;
	int ran = 0;

	CHECK(cuStreamBeginCapture_v2(STREAM, 0) == 0, "begin");
	CHECK(cuLaunchHostFunc(STREAM, note_down, &ran) == 0, "launch");
	CHECK(cuStreamEndCapture(STREAM, &graph) == 0, "end");
	CHECK(given.argument != first, "a place of its own");
}

static void one_in_a_graph_runs_any_number_of_times_and_is_found_there(void)
{
	void *graph, *params[2];
	int ran = 0;

	CHECK(cuStreamBeginCapture_v2(STREAM, 0) == 0, "begin");
	CHECK(cuLaunchHostFunc(STREAM, note_down, &ran) == 0, "launch");
	CHECK(cuStreamEndCapture(STREAM, &graph) == 0, "end");
	CHECK(given.host != note_down, "it is followed");
	for (int i = 0; i < 5; i++) {
		int other = 0;
		void (*host)(void *) = given.host;
		void *argument = given.argument;

		host(argument);
		CHECK(cuLaunchHostFunc(STREAM, note_down, &other) == 0, "launch");
		run_host(NULL);
		CHECK(other == 1 && ran == i + 1, "%d", ran);
		given.host = host;
		given.argument = argument;
	}
	CHECK(cuGraphHostNodeGetParams(NULL, params) == 0, "params");
	CHECK(params[0] == (void *)note_down && params[1] == &ran, "as the program gave them");
	one_more_in_a_graph(given.argument);
	given.host = note_down;
	given.argument = &started;
	CHECK(cuGraphHostNodeGetParams(NULL, params) == 0, "params");
	CHECK(params[0] == (void *)note_down && params[1] == &started, "one that never came through us");
}

int main(int argc, char **argv)
{
	stub_says(argv, on_call);
	a_host_function();
	a_stream_callback();
	its_calls_wait_when_the_gate_is_closed();
	a_call_of_it_is_waited_for_by_sealing_alone();
	it_ends_with_the_function();
	the_place_of_one_that_ran_is_used_again();
	the_place_of_one_that_was_refused_is_used_again();
	many_may_be_waiting();
	no_function_is_handed_on();
	one_in_a_graph_runs_any_number_of_times_and_is_found_there();
	return 0;
}
