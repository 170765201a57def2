// SPDX-License-Identifier: Apache-2.0
/* Device memory itself. What can be exported is a memfd: it lives as long as somebody has it open,
 * as on hardware. The heap's is shared anonymous memory at its one place. */
#include "softgpu.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;
struct physical *physicals;
static size_t used;
static notifier *used_notifier; /* the same, for those who poll */

int memory_init(void)
{
	used_notifier = notify_get();
	return used_notifier ? 0 : -ENOMEM;
}

/* Takes no lock, and reads what the device writes. */
size_t memory_free(void)
{
	return device.memory - (size_t)atomic_load(used_notifier);
}

static void set_used(size_t size)
{
	used = size;
	atomic_store(used_notifier, size);
}

/* Called with memory_lock held. */
void physical_link(struct physical *physical)
{
	physical->next = physicals;
	if (physicals)
		physicals->previous = physical;
	physicals = physical;
}

/* Called with memory_lock held. */
CUresult physical_make(size_t size, bool file, struct physical **out)
{
	struct physical *physical;

	if (size > device.memory - used)
		return CUDA_ERROR_OUT_OF_MEMORY;
	physical = calloc(1, sizeof(*physical));
	if (!physical)
		return CUDA_ERROR_OUT_OF_MEMORY;
	physical->size = size;
	physical->fd = -1;
	if (file) {
		physical->fd = device_file(size);
		if (physical->fd < 0) {
			free(physical);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	set_used(used + size);
	physical_link(physical);
	*out = physical;
	return CUDA_SUCCESS;
}

/* Called with memory_lock held, when nothing refers to it. */
void physical_free(struct physical *physical)
{
	if (physical->fd >= 0)
		close(physical->fd);
	if (!physical->imported)
		set_used(used - physical->size);
	if (physical->previous)
		physical->previous->next = physical->next;
	else
		physicals = physical->next;
	if (physical->next)
		physical->next->previous = physical->previous;
	free(physical);
}

/* Put memory where a range was reserved: `fd` or, for the heap, new shared memory. */
int shadow_map(void *at, size_t size, int access, int fd)
{
	int flags = MAP_SHARED | MAP_FIXED | (fd < 0 ? MAP_ANONYMOUS : 0);

	if (mmap(at, size, access, flags, fd, 0) == MAP_FAILED)
		return -errno;
	madvise(at, size, MADV_DONTFORK);
	return 0;
}

/* Take it away; the range stays reserved. */
int shadow_clear(void *at, size_t size)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;

	return mmap(at, size, PROT_NONE, flags, -1, 0) == MAP_FAILED ? -errno : 0;
}
