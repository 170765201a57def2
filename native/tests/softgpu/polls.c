// SPDX-License-Identifier: Apache-2.0
/* Who polls while the device is taken away dies; who asks for anything else waits. */
#include "testing.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

static CUevent event;
static const char *role;
static CUresult (*memory_info)(size_t *, size_t *);
static atomic_ulong polls;

static void *poll_forever(void *unused)
{
	size_t a, b;

	CHECK(cuda.CtxSetCurrent(gpu.ctx));
	for (;;) {
		if (strcmp(role, "event") == 0)
			cuda.EventQuery(event);
		if (strcmp(role, "stream") == 0)
			cuda.StreamQuery(NULL);
		if (strcmp(role, "context") == 0)
			cuda.CtxSynchronize();
		if (strcmp(role, "memory") == 0)
			memory_info(&a, &b);
		atomic_fetch_add(&polls, 1);
	}
	return unused;
}

static void poller(void)
{
	pthread_t thread;
	char byte;

	gpu_open();
	*(void **)&memory_info = driver_symbol("cuMemGetInfo_v2");
	CHECK(cuda.EventCreate(&event, 0));
	CHECK(cuda.EventRecord(event, NULL));
	CHECK(cuda.CtxSynchronize());
	EXPECT(pthread_create(&thread, NULL, poll_forever, NULL) == 0);
	while (!atomic_load(&polls))
		sleep_ms(1);
	role_answer('r');
	while ((byte = role_next()))
		role_answer(byte);
	exit(0);
}

static int end_of(const char *name)
{
	struct child child = child_start(name);

	EXPECT_EQ(driver.lock(child.pid, NULL), CUDA_SUCCESS);
	driver.checkpoint(child.pid, NULL); /* 304 if the process died before it could answer */
	sleep_ms(100);
	if (driver.restore(child.pid, NULL) == CUDA_SUCCESS)
		EXPECT_EQ(driver.unlock(child.pid, NULL), CUDA_SUCCESS);
	return child_end(&child);
}

int main(int argc, char **argv)
{
	role = role_of(argc, argv);
	if (role)
		poller();
	driver_open();
	EXPECT_EQ(end_of("event"), -SIGSEGV);
	EXPECT_EQ(end_of("stream"), -SIGSEGV);
	EXPECT_EQ(end_of("context"), -SIGSEGV);
	EXPECT_EQ(end_of("memory"), -SIGSEGV);
	return 0;
}
