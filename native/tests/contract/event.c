// SPDX-License-Identifier: Apache-2.0
/* Events: states, times, waiting for other streams. */
#include "contract.h"

static struct kernels k;
static CUdeviceptr done;

static void invalid(void)
{
	CUevent event;
	float ms;

	code("create-null", cu.EventCreate(NULL, 0));
	code("create-flags", cu.EventCreate(&event, 0x4000));
	code("create-interprocess-timing", cu.EventCreate(&event, CU_EVENT_INTERPROCESS));
	code("query-null", cu.EventQuery(NULL));
	code("record-null", cu.EventRecord(NULL, NULL));
	code("synchronize-null", cu.EventSynchronize(NULL));
	code("destroy-null", cu.EventDestroy(NULL));
	code("elapsed-null", cu.EventElapsedTime(&ms, NULL, NULL));
	code("wait-null", cu.StreamWaitEvent(NULL, NULL, 0));
}

static void states(CUstream stream, CUevent event)
{
	code("query-never-recorded", cu.EventQuery(event));
	code("synchronize-never-recorded", cu.EventSynchronize(event));
	launch_spin(&k, SPIN_MS, done, stream);
	code("record", cu.EventRecord(event, stream));
	code("query-busy", cu.EventQuery(event));
	code("synchronize", cu.EventSynchronize(event));
	code("query-finished", cu.EventQuery(event));
	launch_spin(&k, SPIN_MS, done, stream);
	code("record-again", cu.EventRecord(event, stream));
	code("query-busy-again", cu.EventQuery(event));
	NEED(cu.StreamSynchronize(stream));
	code("query-finished-again", cu.EventQuery(event));
}

static void elapsed(CUstream stream)
{
	CUevent begin, end, untimed;
	float ms = -1;

	NEED(cu.EventCreate(&begin, 0));
	NEED(cu.EventCreate(&end, 0));
	NEED(cu.EventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
	code("elapsed-never-recorded", cu.EventElapsedTime(&ms, begin, end));
	NEED(cu.EventRecord(begin, stream));
	launch_spin(&k, SPIN_MS, done, stream);
	NEED(cu.EventRecord(end, stream));
	NEED(cu.EventRecord(untimed, stream));
	code("elapsed-busy", cu.EventElapsedTime(&ms, begin, end));
	NEED(cu.StreamSynchronize(stream));
	code("elapsed", cu.EventElapsedTime(&ms, begin, end));
	yes("elapsed-plausible", ms > SPIN_MS - 50 && ms < 10 * SPIN_MS);
	NEED(cu.EventElapsedTime(&ms, end, begin));
	yes("elapsed-backwards", ms < -(SPIN_MS - 50));
	code("elapsed-untimed", cu.EventElapsedTime(&ms, begin, untimed));
	code("destroy", cu.EventDestroy(begin));
}

static void waiting(CUstream stream, CUstream other, CUevent event)
{
	uint64_t *count, sum = 0;

	NEED(cu.MemHostAlloc((void **)&count, sizeof(*count), 0));
	NEED(cu.MemsetD8(done, 0, 8));
	launch_spin(&k, SPIN_MS, done, stream);
	NEED(cu.EventRecord(event, stream));
	code("wait", cu.StreamWaitEvent(other, event, 0));
	NEED(cu.MemcpyDtoHAsync(count, done, 8, other));
	code("waiting-is-busy", cu.StreamQuery(other));
	NEED(cu.StreamSynchronize(other));
	sum = *count;
	value("waited-for", "%llu", (unsigned long long)sum);
	launch_spin(&k, SPIN_MS, done, stream);
	NEED(cu.EventRecord(event, stream));
	code("destroy-busy", cu.EventDestroy(event));
	code("synchronize-after", cu.CtxSynchronize());
}

void group_event(void)
{
	CUstream stream, other;
	CUevent event;

	contract_open();
	contract_kernels(&k);
	NEED(cu.MemAlloc(&done, 8));
	NEED(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	NEED(cu.StreamCreate(&other, CU_STREAM_NON_BLOCKING));
	NEED(cu.EventCreate(&event, 0));
	invalid();
	states(stream, event);
	elapsed(stream);
	waiting(stream, other, event);
}
