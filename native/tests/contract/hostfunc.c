// SPDX-License-Identifier: Apache-2.0
/* Functions of the program that run in stream order. */
#include "contract.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static char order[16];
static atomic_int length;
static CUresult inside[3];
static long thread;

static void note(void *letter)
{
	order[atomic_fetch_add(&length, 1)] = *(char *)letter;
}

static void note_slowly(void *letter)
{
	sleep_ms(200);
	note(letter);
}

static void call_driver(void *unused)
{
	size_t free_bytes, total;
	CUdeviceptr memory;

	thread = syscall(SYS_gettid);
	inside[0] = cu.MemAlloc(&memory, 4096);
	inside[1] = cu.StreamQuery(NULL);
	inside[2] = cu.MemGetInfo(&free_bytes, &total);
}

static void callback(CUstream stream, CUresult status, void *letter)
{
	note(status ? "!" : letter);
}

static void run_in_order(CUstream stream)
{
	struct kernels k;
	CUdeviceptr done;

	contract_kernels(&k);
	NEED(cu.MemAlloc(&done, 8));
	launch_spin(&k, SPIN_MS, done, stream);
	code("launch", cu.LaunchHostFunc(stream, note_slowly, "a"));
	NEED(cu.LaunchHostFunc(stream, note, "b"));
	code("callback", cu.StreamAddCallback(stream, callback, "c", 0));
	NEED(cu.LaunchHostFunc(stream, note_slowly, "d"));
	value("not-yet", "[%s]", order);
	code("query-busy", cu.StreamQuery(stream));
	NEED(cu.StreamSynchronize(stream));
	value("order", "%s", order);
}

void group_hostfunc(void)
{
	CUstream stream;

	contract_open();
	NEED(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	run_in_order(stream);
	code("launch-null", cu.LaunchHostFunc(stream, NULL, NULL));
	code("callback-flags", cu.StreamAddCallback(stream, callback, "x", 1));
	code("launch-driver-calls", cu.LaunchHostFunc(stream, call_driver, NULL));
	NEED(cu.StreamSynchronize(stream));
	value("driver-calls-inside", "%d %d %d", (int)inside[0], (int)inside[1], (int)inside[2]);
	yes("on-another-thread", thread && thread != syscall(SYS_gettid));
	code("launch-default", cu.LaunchHostFunc(NULL, note, "e"));
	NEED(cu.StreamSynchronize(NULL));
	value("order-default", "%s", order + strlen("abcd"));
}
