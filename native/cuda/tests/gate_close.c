// SPDX-License-Identifier: Apache-2.0
/* What closing the gate does to one thread. */
#include "gate_test.h"

int cuLaunchKernel(void *f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
		   unsigned int by, unsigned int bz, unsigned int shared, void *stream, void **params,
		   void **extra);

static struct stub *stub;
static atomic_int inside, calls, may_leave;

static int on_call(const char *name, void *first, void *second, void *third)
{
	atomic_fetch_add(&inside, 1);
	while (!strcmp(name, "cuStreamSynchronize") && !atomic_load(&may_leave))
		nap();
	if (first) /* the driver may call itself */
		cuEventQuery(NULL);
	atomic_fetch_sub(&inside, 1);
	atomic_fetch_add(&calls, 1);
	return 600;
}

static void *query(void *event)
{
	errno = 77;
	CHECK(cuEventQuery(event) == 600, "the answer");
	CHECK(errno == 77, "errno belongs to the program");
	return NULL;
}

static void *synchronize(void *stream)
{
	cuStreamSynchronize(stream);
	return NULL;
}

static void calls_wait_while_it_is_closed(void)
{
	pthread_t thread;

	atomic_store(&calls, 0);
	must_close();
	CHECK(gate_state() == GATE_CLOSED, "state");
	thread = begin(query, NULL);
	STAYS_FALSE(atomic_load(&calls));
	gate_open();
	pthread_join(thread, NULL);
	CHECK(atomic_load(&calls) == 1 && gate_state() == GATE_OPEN, "one call");
}

static atomic_int launched;

static void *launch(void *argument)
{
	CHECK(cuLaunchKernel((void *)1, 2, 3, 4, 5, 6, 7, 8, (void *)9, (void *)10, (void *)11) == 7,
	      "result");
	atomic_store(&launched, 1);
	return NULL;
}

/* It is the first call of its thread, and it waits. */
static void a_call_that_waited_is_made_as_it_was_given(void)
{
	pthread_t thread;

	memset(stub->integers, 0, sizeof(stub->integers));
	must_close();
	thread = begin(launch, NULL);
	STAYS_FALSE(atomic_load(&launched));
	gate_open();
	pthread_join(thread, NULL);
	for (int i = 0; i < 11; i++)
		CHECK(stub->integers[i] == (unsigned int)i + 1, "argument %d", i);
}

static void closing_holds_new_calls_too(void)
{
	struct gate_busy busy;
	pthread_t thread;

	atomic_store(&calls, 0);
	CHECK(gate_close(in(LONG), &busy) && gate_state() == GATE_CLOSING, "close");
	thread = begin(query, NULL);
	STAYS_FALSE(atomic_load(&calls));
	CHECK(gate_seal(in(LONG), &busy) && gate_state() == GATE_CLOSED, "seal");
	STAYS_FALSE(atomic_load(&calls));
	gate_open();
	pthread_join(thread, NULL);
}

static void it_can_be_closed_when_it_is_closed(void)
{
	must_close();
	must_close();
	gate_open();
}

static void a_blocking_call_is_waited_for_until_the_deadline(void)
{
	struct gate_busy busy;
	pthread_t thread;

	atomic_store(&may_leave, 0);
	thread = begin(synchronize, NULL);
	WAIT_FOR(atomic_load(&inside));
	CHECK(!gate_close(in(SHORT), &busy), "closed with a call inside");
	CHECK(busy.inside == 1 && busy.captures == 0, "%u inside", busy.inside);
	CHECK(gate_state() == GATE_OPEN, "it is open again");
	query(NULL);
	atomic_store(&may_leave, 1);
	must_close();
	CHECK(!atomic_load(&inside), "inside");
	gate_open();
	pthread_join(thread, NULL);
}

/* A call that the driver makes in the middle of another passes, or the other could not end. */
static void a_call_inside_a_call_passes(void)
{
	pthread_t thread;

	atomic_store(&may_leave, 0);
	thread = begin(synchronize, (void *)1);
	WAIT_FOR(atomic_load(&inside));
	_Atomic uint32_t word = GATE_CLOSING;
	gate_use_word(&word); /* as the host sets it */
	atomic_store(&may_leave, 1);
	pthread_join(thread, NULL);
	gate_open();
	gate_use_word(NULL);
}

static _Atomic uint32_t page_word;

static void the_host_may_have_begun_it(void)
{
	struct gate_busy busy;
	pthread_t thread;

	atomic_store(&calls, 0);
	gate_use_word(&page_word);
	atomic_store(&page_word, GATE_CLOSING);
	thread = begin(query, NULL);
	STAYS_FALSE(atomic_load(&calls));
	CHECK(gate_close(in(LONG), &busy) && gate_seal(in(LONG), &busy), "close");
	CHECK(atomic_load(&page_word) == GATE_CLOSED, "the word is the page's");
	gate_open();
	pthread_join(thread, NULL);
	CHECK(atomic_load(&page_word) == GATE_OPEN, "the word is the page's");
	gate_use_word(NULL);
}

/* Opening wakes who waits: a thread that only looks from time to time would come 40 ms later. */
static void who_waits_is_woken(void)
{
	uint64_t least = SECOND;

	for (int i = 0; i < 10; i++) {
		uint64_t opened, took;
		pthread_t thread;

		must_close();
		thread = begin(query, NULL);
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
		opened = in(0);
		gate_open();
		pthread_join(thread, NULL);
		took = in(0) - opened;
		least = took < least ? took : least;
	}
	CHECK(least < SECOND / 50, "%llu ns", (unsigned long long)least);
}

/* A wake that is lost, as over a restore, costs a moment. */
static void a_lost_wake_does_no_harm(void)
{
	pthread_t thread;

	gate_use_word(&page_word);
	must_close();
	thread = begin(query, NULL);
	STAYS_FALSE(false);
	atomic_store(&page_word, GATE_OPEN);
	pthread_join(thread, NULL);
	gate_use_word(NULL);
}

static void *exempt(void *argument)
{
	gate_exempt();
	return query(argument);
}

static void the_control_thread_passes(void)
{
	must_close();
	pthread_join(begin(exempt, NULL), NULL);
	must_close();
	gate_open();
}

int main(int argc, char **argv)
{
	stub = stub_says(argv, on_call);
	calls_wait_while_it_is_closed();
	a_call_that_waited_is_made_as_it_was_given();
	closing_holds_new_calls_too();
	it_can_be_closed_when_it_is_closed();
	a_blocking_call_is_waited_for_until_the_deadline();
	a_call_inside_a_call_passes();
	the_host_may_have_begun_it();
	who_waits_is_woken();
	a_lost_wake_does_no_harm();
	the_control_thread_passes();
	return 0;
}
