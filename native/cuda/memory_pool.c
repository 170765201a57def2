// SPDX-License-Identifier: Apache-2.0
/* Records and the lock around them. Memory is the kernel's: the program's malloc may be what called us. */
#include "memory.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BATCH ((size_t)64 << 10)

enum { FREE, TAKEN, WAITED_FOR };

static _Atomic uint32_t lock;

void memory_lock(void)
{
	uint32_t seen = FREE;

	if (atomic_compare_exchange_strong_explicit(&lock, &seen, TAKEN, memory_order_acquire,
						    memory_order_relaxed))
		return;
	while (atomic_exchange_explicit(&lock, WAITED_FOR, memory_order_acquire) != FREE)
		syscall(SYS_futex, &lock, FUTEX_WAIT_PRIVATE, WAITED_FOR, NULL, NULL, 0);
}

void memory_unlock(void)
{
	if (atomic_exchange_explicit(&lock, FREE, memory_order_release) == WAITED_FOR)
		syscall(SYS_futex, &lock, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void *pages_take(size_t size)
{
	int saved = errno;
	void *pages =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	errno = saved;
	return pages == MAP_FAILED ? NULL : pages;
}

void pages_give(void *pages, size_t size)
{
	int saved = errno;

	munmap(pages, size);
	errno = saved;
}

static bool refill(struct pool *pool)
{
	char *batch = pages_take(BATCH);

	if (!batch)
		return false;
	for (size_t at = 0; at + pool->size <= BATCH; at += pool->size)
		pool_give(pool, batch + at);
	return true;
}

void *pool_take(struct pool *pool)
{
	void **record;

	if (!pool->free && !refill(pool))
		return NULL;
	record = pool->free;
	pool->free = *record;
	__builtin_memset(record, 0, pool->size);
	return record;
}

void pool_give(struct pool *pool, void *record)
{
	*(void **)record = pool->free;
	pool->free = record;
}

void memory_forget(void)
{
	atomic_store(&lock, FREE);
	quiesce_forget();
	blocks_forget();
	gpus_forget();
	backings_forget();
	names_forget();
	others_forget();
	contexts_forget();
}
