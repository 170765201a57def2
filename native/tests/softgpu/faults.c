// SPDX-License-Identifier: Apache-2.0
/* DIAPAUSE_SOFTGPU_FAULT in the process that is checkpointed. */
#include "role.h"
#include "testing.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static struct child with(const char *fault)
{
	setenv("DIAPAUSE_SOFTGPU_FAULT", fault, 1);
	return child_start("counter");
}

static void goes_on(const struct child *child)
{
	EXPECT_EQ(driver.lock(child->pid, NULL), CUDA_SUCCESS);
	EXPECT_EQ(driver.checkpoint(child->pid, NULL), CUDA_SUCCESS);
	EXPECT_EQ(driver.restore(child->pid, NULL), CUDA_SUCCESS);
	EXPECT_EQ(driver.unlock(child->pid, NULL), CUDA_SUCCESS);
	EXPECT_EQ(child_do(child, 'v'), 'v');
	EXPECT_EQ(child_end(child), 0);
}

static void failures_with_a_count(void)
{
	struct child child = with("lock=fail:1,checkpoint=fail:2,unlock=fail:1");

	EXPECT_EQ(driver.lock(child.pid, NULL), CUDA_ERROR_UNKNOWN);
	EXPECT_EQ(driver_state(child.pid), CU_PROCESS_STATE_RUNNING);
	EXPECT_EQ(driver.lock(child.pid, NULL), CUDA_SUCCESS);
	EXPECT_EQ(driver.checkpoint(child.pid, NULL), CUDA_ERROR_UNKNOWN);
	EXPECT_EQ(driver.checkpoint(child.pid, NULL), CUDA_ERROR_UNKNOWN);
	EXPECT_EQ(driver_state(child.pid), CU_PROCESS_STATE_LOCKED);
	EXPECT_EQ(driver.unlock(child.pid, NULL), CUDA_ERROR_UNKNOWN);
	EXPECT_EQ(driver.unlock(child.pid, NULL), CUDA_SUCCESS);
	goes_on(&child);
}

static void a_failed_restore_is_final(void)
{
	struct child child = with("restore=fail:1");

	EXPECT_EQ(driver.lock(child.pid, NULL), CUDA_SUCCESS);
	EXPECT_EQ(driver.checkpoint(child.pid, NULL), CUDA_SUCCESS);
	EXPECT_EQ(driver.restore(child.pid, NULL), CUDA_ERROR_UNKNOWN);
	EXPECT_EQ(driver_state(child.pid), CU_PROCESS_STATE_FAILED);
	EXPECT_EQ(driver.restore(child.pid, NULL), CUDA_ERROR_ILLEGAL_STATE);
	EXPECT_EQ(driver.unlock(child.pid, NULL), CUDA_ERROR_ILLEGAL_STATE);
	EXPECT_EQ(child_do(&child, 'v'), 0);
	EXPECT_EQ(child_end(&child), 8);
}

static void *checkpoint(void *child)
{
	driver.checkpoint(((struct child *)child)->pid, NULL);
	return NULL;
}

/* The call never returns; the process can still be unlocked. */
static void a_call_that_hangs(void)
{
	struct child child = with("checkpoint=hang:1");
	pthread_t thread;

	EXPECT_EQ(driver.lock(child.pid, NULL), CUDA_SUCCESS);
	pthread_create(&thread, NULL, checkpoint, &child);
	sleep_ms(200);
	EXPECT_EQ(driver_state(child.pid), CU_PROCESS_STATE_LOCKED);
	EXPECT_EQ(driver.unlock(child.pid, NULL), CUDA_SUCCESS);
	EXPECT_EQ(child_do(&child, 'v'), 'v');
	child_kill(&child);
	pthread_join(thread, NULL); /* a dead process ends it */
}

int main(int argc, char **argv)
{
	if (role_of(argc, argv))
		role_counter();
	driver_open();
	failures_with_a_count();
	a_failed_restore_is_final();
	a_call_that_hangs();
	return 0;
}
