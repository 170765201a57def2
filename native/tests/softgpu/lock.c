// SPDX-License-Identifier: Apache-2.0
/* Lock waits for the device and for host functions; calls wait for Unlock. */
#include "role.h"
#include "testing.h"

#include <poll.h>

static bool answers_within(const struct child *child, int ms)
{
	struct pollfd wait = { .fd = child->from, .events = POLLIN };

	return poll(&wait, 1, ms) == 1;
}

static void waits_for(const struct child *child, char work)
{
	double start = now_ms();

	EXPECT_EQ(child_do(child, work), work);
	EXPECT_EQ(lock_within(child->pid, 100), CUDA_ERROR_NOT_READY);
	EXPECT_EQ(driver_state(child->pid), CU_PROCESS_STATE_RUNNING);
	EXPECT_EQ(driver.lock(child->pid, NULL), CUDA_SUCCESS);
	EXPECT(now_ms() - start >= 400);
	EXPECT_EQ(driver.unlock(child->pid, NULL), CUDA_SUCCESS);
	EXPECT_EQ(child_do(child, 'v'), 'v');
}

static void holds_calls(const struct child *child)
{
	EXPECT_EQ(driver.lock(child->pid, NULL), CUDA_SUCCESS);
	child_say(child, 'v');
	EXPECT(!answers_within(child, 300));
	EXPECT_EQ(driver.unlock(child->pid, NULL), CUDA_SUCCESS);
	EXPECT_EQ(child_hear(child), 'v');
}

int main(int argc, char **argv)
{
	struct child child;

	if (role_of(argc, argv))
		role_counter();
	driver_open();
	child = child_start("counter");
	waits_for(&child, 's');
	waits_for(&child, 'h');
	holds_calls(&child);
	EXPECT_EQ(child_end(&child), 0);
	return 0;
}
