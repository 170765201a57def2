// SPDX-License-Identifier: Apache-2.0
/* What Checkpoint takes out of a process and Restore brings back: descriptors, shared mappings. */
#include "role.h"
#include "testing.h"

#define SHARED "/dev/zero" /* how the kernel shows shared anonymous memory */

static unsigned devices(pid_t pid)
{
	return fds_like(pid, "/dev/") - fds_like(pid, "/dev/null") - fds_like(pid, "/dev/pts") -
	       fds_like(pid, "/dev/tty");
}

static void round_trip(const struct child *child)
{
	unsigned before = devices(child->pid);
	size_t shared = mapped_like(child->pid, SHARED);

	EXPECT(before >= 1);
	EXPECT(shared >= (1 << 20));
	EXPECT_EQ(driver.lock(child->pid, NULL), CUDA_SUCCESS);
	EXPECT_EQ(driver.checkpoint(child->pid, NULL), CUDA_SUCCESS);
	EXPECT_EQ(devices(child->pid), before - 1);
	EXPECT_EQ(fds_like(child->pid, "memfd:softgpu-memory"), 0);
	EXPECT_EQ(fds_like(child->pid, "memfd:softgpu-control"), 1);
	EXPECT_EQ(mapped_like(child->pid, SHARED), 0);
	EXPECT_EQ(driver.restore(child->pid, NULL), CUDA_SUCCESS);
	EXPECT_EQ(devices(child->pid), before);
	EXPECT_EQ(mapped_like(child->pid, SHARED), shared);
	EXPECT_EQ(driver.unlock(child->pid, NULL), CUDA_SUCCESS);
	EXPECT_EQ(child_do(child, 'v'), 'v');
}

int main(int argc, char **argv)
{
	struct child child;
	int tid = 0;

	if (role_of(argc, argv))
		role_counter();
	driver_open();
	child = child_start("counter");
	EXPECT_EQ(child_do(&child, 'v'), 'v');
	EXPECT_EQ(driver.get_tid(child.pid, &tid), CUDA_SUCCESS);
	EXPECT(tid > 0 && tid != child.pid);
	for (int i = 0; i < 20; i++)
		round_trip(&child);
	EXPECT_EQ(child_end(&child), 0);
	return 0;
}
