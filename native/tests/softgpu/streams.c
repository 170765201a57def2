// SPDX-License-Identifier: Apache-2.0
/* Threads on streams of every kind that wait for one another, all at once, with and without
 * checkpoints between: nothing stands still and every sum is right. */
#include "testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define THREADS 8
#define PERIOD 1500 /* ms */

static CUresult (*wait_event)(CUstream, CUevent, unsigned);
static CUresult (*destroy_stream)(CUstream);
static CUevent events[THREADS];
static atomic_ulong rounds[THREADS];
static atomic_bool stop;

static CUstream stream_of(uintptr_t number)
{
	CUstream stream = NULL; /* the default stream of all */

	if (number % 4 == 1)
		stream = CU_STREAM_PER_THREAD;
	else if (number % 4)
		CHECK(cuda.StreamCreate(&stream, number % 4 == 2 ? 0 : CU_STREAM_NON_BLOCKING));
	return stream;
}

static void one_round(struct array *array, uintptr_t number)
{
	CUdeviceptr other;

	/* After the neighbour's last work. */
	CHECK(wait_event(array->stream, events[(number + 1) % THREADS], 0));
	array_step(array);
	CHECK(cuda.EventRecord(events[number], array->stream));
	array_sum(array);
	array_verify(array);
	CHECK(cuda.MemAlloc(&other, 5000 * (number + 1)));
	CHECK(cuda.MemFree(other));
}

static void *work(void *argument)
{
	uintptr_t number = (uintptr_t)argument;
	CUdeviceptr scratch;
	struct array array;
	CUstream extra;

	CHECK(cuda.CtxSetCurrent(gpu.ctx));
	array_make(&array, 1000 + 100 * number, number, stream_of(number));
	CHECK(cuda.MemAlloc(&scratch, 8));
	while (!atomic_load(&stop)) {
		one_round(&array, number);
		if (atomic_fetch_add(&rounds[number], 1) % 16 == 0) {
			CHECK(cuda.StreamCreate(&extra, 0));
			CHECK(cuda.MemsetD8Async(scratch, 0, 8, extra));
			CHECK(destroy_stream(extra));
		}
	}
	return NULL;
}

static void role(void)
{
	pthread_t threads[THREADS];

	gpu_open();
	*(void **)&wait_event = driver_symbol("cuStreamWaitEvent");
	*(void **)&destroy_stream = driver_symbol("cuStreamDestroy_v2");
	for (int i = 0; i < THREADS; i++)
		CHECK(cuda.EventCreate(&events[i], CU_EVENT_DISABLE_TIMING));
	for (uintptr_t i = 0; i < THREADS; i++)
		EXPECT(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
	role_answer('r');
	while (role_next()) {
		for (int i = 0; i < THREADS; i++) {
			unsigned long before = atomic_load(&rounds[i]);
			double end = now_ms() + 10000;

			while (atomic_load(&rounds[i]) == before && now_ms() < end)
				sleep_ms(1);
			if (atomic_load(&rounds[i]) == before)
				fprintf(stderr, "thread %d stands still\n", i);
			EXPECT(atomic_load(&rounds[i]) != before);
		}
		role_answer('v');
	}
	atomic_store(&stop, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	exit(0);
}

int main(int argc, char **argv)
{
	struct child child;
	double end;

	if (role_of(argc, argv))
		role();
	driver_open();
	child = child_start("threads");
	for (end = now_ms() + PERIOD; now_ms() < end; sleep_ms(20))
		EXPECT_EQ(child_do(&child, 'v'), 'v');
	for (end = now_ms() + PERIOD; now_ms() < end; sleep_ms(20)) {
		EXPECT_EQ(driver.lock(child.pid, NULL), CUDA_SUCCESS);
		EXPECT_EQ(driver.checkpoint(child.pid, NULL), CUDA_SUCCESS);
		EXPECT_EQ(driver.restore(child.pid, NULL), CUDA_SUCCESS);
		EXPECT_EQ(driver.unlock(child.pid, NULL), CUDA_SUCCESS);
		EXPECT_EQ(child_do(&child, 'v'), 'v');
	}
	EXPECT_EQ(child_end(&child), 0);
	return 0;
}
