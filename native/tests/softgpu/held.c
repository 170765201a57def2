// SPDX-License-Identifier: Apache-2.0
/* A checkpoint while every thread of the program is held still by ptrace, wherever it is: only the
 * driver's threads run. Many rounds, so that threads are met inside the driver too. */
#include "testing.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#define ROUNDS 40
#define WORKERS 6
#define HELD 64

static pid_t held[HELD];
static unsigned held_count;

static CUevent event;

/* Half of them compute and wait, half of them poll. */
static void *work(void *argument)
{
	struct array array;
	CUstream stream;

	CHECK(cuda.CtxSetCurrent(gpu.ctx));
	CHECK(cuda.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	array_make(&array, 20000, (uint64_t)(uintptr_t)argument, stream);
	for (;;) {
		array_step(&array);
		array_sum(&array);
		CHECK(cuda.EventRecord(event, stream));
		if ((uintptr_t)argument % 2) {
			while (cuda.StreamQuery(stream) == CUDA_ERROR_NOT_READY)
				cuda.EventQuery(event);
		}
		array_verify(&array);
	}
	return NULL;
}

static void role(void)
{
	pthread_t thread;
	char byte;

	gpu_open();
	CHECK(cuda.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
	for (uintptr_t i = 0; i < WORKERS; i++)
		EXPECT(pthread_create(&thread, NULL, work, (void *)i) == 0);
	role_answer('r');
	while ((byte = role_next()))
		role_answer(byte);
	exit(0);
}

static bool of_driver(pid_t pid, const char *tid)
{
	char path[64], name[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/comm", pid, tid);
	file = fopen(path, "r");
	if (file) {
		if (!fgets(name, sizeof(name), file))
			name[0] = 0;
		fclose(file);
	}
	return strncmp(name, "cuda", 4) == 0;
}

static void hold(pid_t pid)
{
	char path[64];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	EXPECT(dir);
	held_count = 0;
	while ((entry = readdir(dir))) {
		pid_t tid = atoi(entry->d_name);

		if (tid <= 0 || of_driver(pid, entry->d_name))
			continue;
		EXPECT(held_count < HELD);
		EXPECT(ptrace(PTRACE_SEIZE, tid, NULL, NULL) == 0);
		EXPECT(ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0);
		EXPECT(waitpid(tid, NULL, __WALL) == tid);
		held[held_count++] = tid;
	}
	closedir(dir);
	EXPECT(held_count > WORKERS);
}

static void let_run(void)
{
	for (unsigned i = 0; i < held_count; i++)
		EXPECT(ptrace(PTRACE_DETACH, held[i], NULL, NULL) == 0);
}

/* Everything happens while the threads are held, the lock too; if one was met inside a call, it
 * may take a little more of its time. */
static void lock_held(pid_t pid)
{
	for (int tries = 0; tries < 200; tries++) {
		CUresult result;

		hold(pid);
		result = lock_within(pid, 40);
		if (result == CUDA_SUCCESS)
			return;
		EXPECT_EQ(result, CUDA_ERROR_NOT_READY);
		let_run();
		sleep_ms(1);
	}
	EXPECT(!"the lock came while the threads were held");
}

int main(int argc, char **argv)
{
	struct child child;

	if (role_of(argc, argv))
		role();
	driver_open();
	child = child_start("workers");
	for (int i = 0; i < ROUNDS; i++) {
		lock_held(child.pid);
		EXPECT_EQ(driver.checkpoint(child.pid, NULL), CUDA_SUCCESS);
		EXPECT_EQ(driver.restore(child.pid, NULL), CUDA_SUCCESS);
		EXPECT_EQ(driver.unlock(child.pid, NULL), CUDA_SUCCESS);
		let_run();
		sleep_ms((unsigned)i % 7);
	}
	EXPECT_EQ(child_do(&child, 'x'), 'x');
	EXPECT_EQ(child_end(&child), 0);
	return 0;
}
