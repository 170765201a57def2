// SPDX-License-Identifier: Apache-2.0
/* Host functions are in flight all the time, some of them slow: each counts, in stream order, and
 * the counts are checked when the stream has come to them. */
#include "gpu.h"
#include "report.h"

#include <errno.h>
#include <stdatomic.h>
#include <time.h>

#define AHEAD 32 /* host functions a step, submitted before the step before is waited for */

static atomic_uint_fast64_t calls, disorder;

static void count(void *expected)
{
	struct timespec slow = { 0, 5000000 };
	uint64_t number = atomic_fetch_add(&calls, 1);

	if (number != (uint64_t)(uintptr_t)expected)
		atomic_fetch_add(&disorder, 1);
	if (number % 8 == 0)
		nanosleep(&slow, NULL);
}

static uint64_t submit(CUstream stream, uint64_t from)
{
	for (uint64_t i = from; i < from + AHEAD; i++)
		CHECK(cuda.LaunchHostFunc(stream, count, (void *)(uintptr_t)i));
	return from + AHEAD;
}

int main(int argc, char **argv)
{
	struct options options = { .interval = 5, .mib = 4 };
	uint64_t submitted = 0, due;
	struct array array;
	CUevent event;
	CUstream stream;

	options_parse(&options, argc, argv);
	gpu_open();
	CHECK(cuda.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuda.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
	array_make(&array, (options.mib << 20) / sizeof(uint64_t), 8, stream);
	report_ready(&options);
	do {
		due = submitted = submit(stream, submitted);
		array_step(&array);
		array_sum(&array);
		CHECK(cuda.EventRecord(event, stream));
		submitted = submit(stream, submitted);
		CHECK(cuda.EventSynchronize(event));
		if (atomic_load(&disorder) || atomic_load(&calls) < due)
			report_bad(array.model.steps, atomic_load(&calls), due);
		if (*array.host_sum != array.model.sum)
			report_bad(array.model.steps, *array.host_sum, array.model.sum);
	} while (report_step(&options, array.model.steps, array.model.sum));
	return 0;
}
