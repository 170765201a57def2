// SPDX-License-Identifier: Apache-2.0
/* Every interleaving of the gate's own code, on a model of a machine that delays stores (x86: each
 * thread sees its own at once, the others see them later and in order).
 *
 * gate.c is compiled into this file with its atomics exchanged for steps of the model. Threads are
 * coroutines; at every step the model chooses who goes on, whose oldest store reaches memory, or who
 * gets a signal whose handler makes a call. It goes through all choices, leaving out states that it
 * has seen: memory, delayed stores, and for every thread a hash of what it has read since its last
 * point of rest, which decides what it does next. Weaker machines (aarch64) are not modelled. */
#include "gate_machine.h"

/* The other parts of the gate. */

const struct gate_thread gate_nobody = { .state = GATE_INSIDE | GATE_TRYING };
const struct gate_thread gate_stray = { .state = GATE_INSIDE | GATE_TRYING };
__thread struct gate_thread *gate_self;

bool gate_barrier_prepare(void)
{
	return !scenario.fence;
}

bool gate_barrier(void)
{
	step();
	for (int i = 0; i < n_threads && !scenario.broken; i++)
		drain(&threads[i]);
	mix(&threads[running].history, 8);
	return true;
}

/* The kernel looks once more, and sleeps until it is woken: there is no time here. */
void gate_park(_Atomic uint32_t *word, uint32_t value)
{
	struct model_thread *me = &threads[running];

	step();
	drain(me);
	if (*(uint32_t *)word == value)
		me->state = PARKED;
	if (me->parked)
		me->history = me->parked;
	me->parked = me->history;
	step();
}

void gate_wake(_Atomic uint32_t *word)
{
	step();
	drain(&threads[running]);
	for (int i = 0; i < n_threads; i++)
		if (threads[i].state == PARKED)
			threads[i].state = RUNS;
}

static int choose(int n);

/* Sleep until memory is another than it was after the last nap: nothing else can end the wait. */
static void sleep_for_a_change(void)
{
	struct model_thread *me = &threads[running];

	if (me->version == version)
		me->state = NAPS;
	step();
	me->version = version;
}

bool gate_nap(unsigned int *naps, uint64_t deadline_ns)
{
	struct model_thread *me = &threads[running];

	if (scenario.deadlines && choose(2))
		return false;
	if (me->napped && me->only_read)
		me->history = me->napped;
	me->napped = me->history;
	me->only_read = true;
	sleep_for_a_change();
	return true;
}

bool gate_thread_lives(int32_t tid)
{
	return true;
}

/* The history tells which thread it is that is waited for. */
static void new_wait(int i)
{
	threads[running].napped = 0;
	mix(&threads[running].history, 300 + i);
}

bool gate_each(bool (*visit)(struct gate_thread *thread, void *argument), void *argument)
{
	for (int i = 0; i < n_threads; i++) {
		new_wait(i);
		visit(&records[i], argument);
	}
	new_wait(n_threads);
	return true;
}

bool gate_strays(void)
{
	return false;
}

struct gate_thread *gate_register(void)
{
	gate_self = &records[running];
	return gate_self;
}

uint32_t gate_captures(void)
{
	return 0;
}

void gate_forget_threads(void)
{
}

void gate_forget_captures(void)
{
}

/* The threads. */

static void make_call(void)
{
	struct model_thread *me = &threads[running];
	bool was;

	gate_enter();
	was = me->in_driver;
	me->in_driver = true;
	FAIL_IF(sealed);
	FAIL_IF(closed && !me->in_callback);
	step();
	FAIL_IF(sealed);
	FAIL_IF(closed && !me->in_callback);
	me->in_driver = was;
	gate_leave();
}

static void handler(void)
{
	make_call();
}

/* Nothing that was read before matters any more. */
static void rest(int done)
{
	threads[running].history = 1000 + done;
	threads[running].parked = threads[running].napped = 0;
}

static void program(void)
{
	for (int i = 0; i < scenario.calls; i++) {
		make_call();
		rest(i);
	}
}

static void driver(void)
{
	struct gate_thread *self;

	threads[running].in_callback = true; /* a signal may come before or after the mark of the gate */
	self = gate_begin_callback();
	program();
	gate_end_callback(self);
	threads[running].in_callback = false;
	callback_over = true;
	change();
}

/* As the control thread drains every context. */
static void drain_contexts(void)
{
	uint64_t history = threads[running].history;

	while (scenario.callback && !scenario.undrained && !callback_over) {
		threads[running].history = history;
		sleep_for_a_change();
	}
}

static void closer(void)
{
	struct gate_busy busy;

	for (int i = 0; i < scenario.rounds; i++) {
		if (gate_close(0, &busy)) {
			closed = true;
			for (int j = 1; j < n_threads; j++)
				FAIL_IF(threads[j].in_driver && !threads[j].in_callback);
			drain_contexts();
			step();
			if (scenario.deadlines) /* it may be opened in there */
				closed = false;
			if (gate_seal(0, &busy)) {
				sealed = true;
				for (int j = 1; j < n_threads; j++)
					FAIL_IF(threads[j].in_driver);
				step();
			}
			sealed = false;
			closed = false;
			gate_open();
		}
		rest(i);
	}
}

/* Exploring. An execution follows the choices made before and goes on with the first of each. */

enum { CHOICES = 4096, SEEN = 1 << 22 };

static unsigned char chosen[CHOICES], options[CHOICES];
static int n_chosen, depth;
static uint64_t *seen;
static long n_seen, executions;

static int choose(int n)
{
	CHECK(depth < CHOICES, "an execution that does not end");
	if (depth == n_chosen) {
		chosen[depth] = 0;
		n_chosen++;
	}
	options[depth] = n;
	return chosen[depth++];
}

static bool next_choices(void)
{
	while (n_chosen && chosen[n_chosen - 1] + 1 >= options[n_chosen - 1])
		n_chosen--;
	if (!n_chosen)
		return false;
	chosen[n_chosen - 1]++;
	return true;
}

static uint64_t state_hash(void)
{
	uint64_t hash = *(uint32_t *)&model_word + 1;

	mix(&hash, signals_left + (closed << 8) + (sealed << 9) + (callback_over << 10));
	for (int i = 0; i < n_threads; i++) {
		struct model_thread *thread = &threads[i];

		mix(&hash, thread->history);
		mix(&hash, thread->napped);
		mix(&hash, thread->parked);
		mix(&hash, thread->state + (thread->in_driver << 4) + (thread->only_read << 5) +
				   (thread->in_callback << 6) + (thread->started << 7) +
				   ((thread->version == version) << 8));
		for (int j = 0; j < thread->n_delayed; j++) {
			mix(&hash, (uintptr_t)thread->delayed[j].at);
			mix(&hash, thread->delayed[j].value);
		}
		for (size_t j = 0; j < 3; j++)
			mix(&hash, ((uint32_t *)&records[i])[j]);
	}
	return hash | 1;
}

/* Was this state explored, or is it in the part of the path that is only repeated? */
static bool is_old(uint64_t hash)
{
	size_t at = hash & (SEEN - 1);

	for (; seen[at]; at = (at + 1) & (SEEN - 1))
		if (seen[at] == hash)
			return true;
	seen[at] = hash;
	CHECK(++n_seen < SEEN / 2, "too many states");
	return false;
}

static void entry(void)
{
	threads[running].program();
	threads[running].state = ENDED;
	_longjmp(scheduler, 1);
}

static void resume(int i)
{
	struct model_thread *thread = &threads[i];

	running = i;
	if (!_setjmp(scheduler)) {
		if (thread->started)
			_longjmp(thread->at, 1);
		ucontext_t context;
		thread->started = true;
		getcontext(&context);
		context.uc_stack.ss_sp = stacks[i];
		context.uc_stack.ss_size = STACK;
		gate_self = thread->self;
		makecontext(&context, entry, 0);
		setcontext(&context);
	}
	running = -1;
}

struct action {
	unsigned char thread;
	enum { GO_ON, COMMIT, SIGNAL } kind;
};

/* A thread of the driver has its signals blocked; here a function that it runs may have unblocked them. */
static bool may_be_signalled(int i)
{
	return threads[i].program == program || *(uint32_t *)&records[i].callbacks;
}

/* A signal may come at any step, and wakes who waits for the gate: the handler runs, and it looks again. */
static int actions(struct action *list)
{
	int n = 0;

	for (int i = 0; i < n_threads; i++) {
		if (threads[i].state == RUNS)
			list[n++] = (struct action){ i, GO_ON };
		if (threads[i].n_delayed)
			list[n++] = (struct action){ i, COMMIT };
		if (i && signals_left && threads[i].started && threads[i].state != ENDED &&
		    may_be_signalled(i))
			list[n++] = (struct action){ i, SIGNAL };
	}
	return n;
}

static void set_scene(void)
{
	memset(threads, 0, sizeof(threads));
	memset(records, 0, sizeof(records));
	*(uint32_t *)&model_word = scenario.host_begins ? GATE_CLOSING : GATE_OPEN;
	closed = sealed = callback_over = false;
	n_threads = 1 + scenario.programs;
	signals_left = scenario.signals;
	for (int i = 0; i < n_threads; i++)
		threads[i] = (struct model_thread){ .program = i ? program : closer, .self = &records[i] };
	if (scenario.callback)
		threads[n_threads - 1].program = driver;
	depth = 0;
	version = 1;
}

/* One execution, until its end or a state that was seen. */
static void execute(void)
{
	struct action list[3 * THREADS];
	int repeated = n_chosen, n;

	set_scene();
	while (!failure) {
		struct action action;

		n = actions(list);
		if (!n)
			break;
		if (depth >= repeated && is_old(state_hash()))
			return;
		action = list[choose(n)];
		if (action.kind == COMMIT) {
			commit(&threads[action.thread]);
			continue;
		}
		if (action.kind == SIGNAL) {
			signals_left--;
			threads[action.thread].signalled = true;
			threads[action.thread].state = RUNS;
			mix(&threads[action.thread].history, 9);
		}
		resume(action.thread);
	}
	for (int i = 0; i < n_threads && !failure; i++)
		FAIL_IF(threads[i].state != ENDED);
	for (int i = 0; i < n_threads && !failure; i++)
		FAIL_IF(*(uint32_t *)&records[i].state != GATE_OUTSIDE);
}

static void tell_path(void)
{
	for (int i = 0; i < n_chosen; i++)
		fprintf(stderr, "%d%c", chosen[i], i % 32 == 31 ? '\n' : ' ');
	fputc('\n', stderr);
}

static void explore(const struct scenario *wanted)
{
	scenario = *wanted;
	check_case = scenario.name;
	memset(seen, 0, SEEN * sizeof(*seen));
	n_seen = executions = n_chosen = 0;
	failure = NULL;
	atomic_store(&mode, UNTRIED);
	gate_use_word(&model_word);
	do {
		execute();
		executions++;
	} while (!failure && next_choices());
	printf("%-50s %8ld states, %8ld executions%s%s\n", scenario.name, n_seen, executions,
	       failure ? ", found: " : "", failure ? failure : "");
	fflush(stdout);
	if (failure && !scenario.broken)
		tell_path();
	CHECK(!failure == !scenario.broken, "%s", failure ? failure : "the model sees nothing");
}

int main(void)
{
	static const struct scenario scenarios[] = {
		{ "a thread, two rounds", 1, 3, .rounds = 2 },
		{ "two threads", 2, 1, .rounds = 1 },
		{ "a signal", 1, 1, 1, .rounds = 2 },
		{ "a signal in a signal", 1, 1, 2, .rounds = 1 },
		{ "a callback", 2, 1, .rounds = 1, .callback = true },
		{ "a callback and a signal", 1, 1, 1, .rounds = 1, .callback = true },
		{ "a callback that nobody drained", 1, 2, .rounds = 2, .callback = true, .undrained = true },
		{ "begun by the host", 2, 1, .rounds = 1, .host_begins = true },
		{ "deadlines", 1, 2, .rounds = 2, .deadlines = true },
		{ "deadlines, a callback", 2, 1, .rounds = 1, .deadlines = true, .callback = true },
		{ "fences: a thread, two rounds", 1, 3, .rounds = 2, .fence = true },
		{ "fences: two threads", 2, 1, .rounds = 1, .fence = true },
		{ "fences: a signal", 1, 1, 1, .rounds = 1, .fence = true },
		{ "without the barrier", 1, 1, .rounds = 1, .broken = true },
		{ "without the fence", 1, 1, .rounds = 1, .fence = true, .broken = true },
	};

	seen = calloc(SEEN, sizeof(*seen));
	CHECK(seen, "memory");
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		explore(&scenarios[i]);
	return 0;
}
