// SPDX-License-Identifier: Apache-2.0
/* Notifiers: words that the device writes when work is finished and that polling calls read
 * without asking anybody. On hardware this is device memory mapped into the process, which the
 * driver takes away at a checkpoint: whoever polls then dies of SIGSEGV. So here. */
#include "softgpu.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define SLOTS 65536
#define BYTES (SLOTS * sizeof(notifier))

static notifier *region;
static void *saved;
static uint32_t freed[SLOTS];
static unsigned free_count, used_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int map_region(void)
{
	int flags = MAP_SHARED | MAP_ANONYMOUS | (region ? MAP_FIXED : 0);
	void *at = mmap(region, BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);

	if (at == MAP_FAILED)
		return -errno;
	madvise(at, BYTES, MADV_DONTFORK);
	region = at;
	return 0;
}

int notify_init(void)
{
	return map_region();
}

notifier *notify_get(void)
{
	notifier *slot = NULL;

	pthread_mutex_lock(&lock);
	if (free_count)
		slot = &region[freed[--free_count]];
	else if (used_count < SLOTS)
		slot = &region[used_count++];
	pthread_mutex_unlock(&lock);
	if (slot)
		atomic_store(slot, 0);
	return slot;
}

void notify_put(notifier *slot)
{
	pthread_mutex_lock(&lock);
	freed[free_count++] = (uint32_t)(slot - region);
	pthread_mutex_unlock(&lock);
}

/* Service thread: take the region away, keep its content. */
int notify_save(void)
{
	void *copy = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED)
		return -errno;
	memcpy(copy, (void *)region, BYTES);
	saved = copy;
	return shadow_clear((void *)region, BYTES);
}

int notify_load(void)
{
	int error = map_region();

	if (error)
		return error;
	memcpy((void *)region, saved, BYTES);
	munmap(saved, BYTES);
	saved = NULL;
	return 0;
}
