// SPDX-License-Identifier: Apache-2.0
/* What there is, told to tools. */
#include "memory.h"

#define SHOWN 0xffffu /* flags that a tool knows */

size_t list_memory(uint64_t first, struct diapause_memory *list, size_t room)
{
	size_t n = 0;

	memory_lock();
	for (struct backing *b = backing_from(first); b && n < room; b = b->next) {
		if (b->flags & BACKING_KEPT)
			continue;
		list[n++] = (struct diapause_memory){
			.id = b->id,
			.address = b->mappings ? b->mappings->address : 0,
			.size = b->size,
			.used = b->used,
			.device = b->device,
			.flags = b->flags & SHOWN,
		};
	}
	memory_unlock();
	return n;
}

static void identify(struct diapause_device *device)
{
	CUuuid uuid = { { 0 } };

	if (!real_has(ENTRY_cuDeviceGetUuid_v2) || driver_DeviceGetUuid_v2(&uuid, device->ordinal))
		driver_DeviceGetUuid(&uuid, device->ordinal);
	__builtin_memcpy(device->uuid, uuid.bytes, sizeof(device->uuid));
}

size_t list_devices(struct diapause_device *list, size_t room)
{
	int count = 0;
	size_t n = 0;

	if (driver_DeviceGetCount(&count))
		return 0;
	for (int i = 0; i < count && i < GPUS && n < room; i++, n++) {
		list[n] = (struct diapause_device){ .ordinal = i, .contexts = contexts_on(i) };
		identify(&list[n]);
	}
	return n;
}

static void add(struct diapause_stats *stats, const struct backing *backing)
{
	if (backing->flags & BACKING_MULTICAST)
		return;
	if (backing->flags & DIAPAUSE_MEMORY_FOREIGN) {
		stats->foreign += backing->size;
		stats->foreign_count++;
	} else if (backing->flags & DIAPAUSE_MEMORY_PROGRAM) {
		stats->program += backing->size;
	} else if (backing->flags & DIAPAUSE_MEMORY_SLAB) {
		stats->slab += backing->size;
	} else {
		stats->tracked += backing->size;
	}
}

void list_stats(struct diapause_stats *stats)
{
	memory_lock();
	*stats = (struct diapause_stats){
		.async = other_bytes(OTHER_ASYNC),
		.managed = other_bytes(OTHER_MANAGED),
		.pinned = other_bytes(OTHER_PINNED),
		.native = other_bytes(OTHER_NATIVE),
		.allocations = blocks_count(),
		.ipc_given = atomic_load(&ipc_given),
		.ipc_opened = other_count(OTHER_IPC),
		.multicast = atomic_load(&vmm_multicasts),
		.managed_count = other_count(OTHER_MANAGED),
	};
	for (struct backing *backing = backing_from(0); backing; backing = backing->next)
		add(stats, backing);
	memory_unlock();
}
