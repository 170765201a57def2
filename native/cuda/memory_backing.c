// SPDX-License-Identifier: Apache-2.0
/* Handles of device memory by id, and the places where they are mapped. */
#include "memory.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NAP_MS 10
#define PATIENCE_MS 1000 /* of an allocation, for a controller to let go of what was released */
#define SOON_MS 2000	 /* after a release that is the time in which it does */

static _Atomic uint64_t last_release; /* of something imported, in milliseconds */

static struct pool backings = { .size = sizeof(struct backing) };
static struct pool mappings = { .size = sizeof(struct mapping) };
static struct backing *first, *last;
static struct backing *cursor; /* the last one that was looked for: the next lies behind it */
static uint64_t last_id;

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000ull + now.tv_nsec / 1000000;
}

struct backing *backing_take(void)
{
	struct backing *backing = pool_take(&backings);

	if (backing)
		backing->fd = -1;
	return backing;
}

void backing_give(struct backing *backing)
{
	pool_give(&backings, backing);
}

/* Ids of handles and of buffers come from one row. */
uint64_t memory_id(void)
{
	return ++last_id;
}

struct backing *backing_add(struct backing *backing)
{
	backing->id = memory_id();
	backing->previous = last;
	backing->next = NULL;
	if (last)
		last->next = backing;
	else
		first = backing;
	last = backing;
	return backing;
}

void backing_remove(struct backing *backing)
{
	if (cursor == backing)
		cursor = NULL;
	if (backing->previous)
		backing->previous->next = backing->next;
	else
		first = backing->next;
	if (backing->next)
		backing->next->previous = backing->previous;
	else
		last = backing->previous;
	if (backing->name)
		name_remove(backing);
}

struct backing *backing_from(uint64_t id)
{
	struct backing *at = cursor && cursor->id <= id ? cursor : first;

	while (at && at->id < id)
		at = at->next;
	if (at)
		cursor = at;
	return at;
}

struct mapping *mapping_add(struct backing *backing, uint64_t address, uint64_t size, uint64_t offset)
{
	struct mapping *mapping = pool_take(&mappings);
	struct mapping **at = &backing->mappings;

	if (!mapping)
		return NULL;
	*mapping = (struct mapping){
		.backing = backing, .address = address, .size = size, .offset = offset, .id = memory_id()
	};
	while (*at)
		at = &(*at)->next;
	*at = mapping;
	return mapping;
}

void mapping_remove(struct mapping *mapping)
{
	struct mapping **at = &mapping->backing->mappings;

	while (*at != mapping)
		at = &(*at)->next;
	*at = mapping->next;
	pool_give(&mappings, mapping);
}

/* Map `real` where the mapping says, with the access that the record tells. */
CUresult mapping_make(const struct mapping *mapping, driver_handle real)
{
	CUmemAccessDesc access[ACCESSES];
	CUresult result = driver_MemMap(mapping->address, mapping->size, mapping->offset, real, 0);

	if (result || !mapping->accesses)
		return result;
	for (uint32_t i = 0; i < mapping->accesses; i++)
		access[i] = (CUmemAccessDesc){ { mapping->access[i].location, mapping->access[i].id },
					       mapping->access[i].flags };
	result = driver_MemSetAccess(mapping->address, mapping->size, access, mapping->accesses);
	if (result)
		driver_MemUnmap(mapping->address, mapping->size);
	return result;
}

void backing_drop_fd(struct backing *backing)
{
	if (backing->fd >= 0)
		close(backing->fd);
	backing->fd = -1;
}

/* Memory that came back from a controller is free only when that has closed its file descriptor too. */
void backing_released(const struct backing *backing)
{
	_Atomic uint64_t *counters = atomic_load_explicit(&control_counters, memory_order_relaxed);
	int saved = errno;

	if (!(backing->flags & DIAPAUSE_MEMORY_IMPORTED))
		return;
	atomic_store(&last_release, now_ms());
	count(DIAPAUSE_COUNT_RELEASED);
	syscall(SYS_futex, &counters[DIAPAUSE_COUNT_RELEASED], FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	errno = saved;
}

bool backing_wait(uint64_t *since)
{
	uint64_t now = now_ms(), last = atomic_load(&last_release);
	struct timespec nap = { .tv_nsec = NAP_MS * 1000000 };
	int saved = errno;

	if (!*since)
		*since = now;
	if (!last || now - last > SOON_MS || now - *since > PATIENCE_MS)
		return false;
	nanosleep(&nap, NULL);
	errno = saved;
	return true;
}

void backings_forget(void)
{
	for (struct backing *backing = first; backing; backing = backing->next)
		backing_drop_fd(backing);
	first = last = cursor = NULL;
}
