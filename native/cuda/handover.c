// SPDX-License-Identifier: Apache-2.0
/* Taking device memory away and bringing it back, in the control thread, while the gates are closed.
 *
 * Everything can be asked for again: what is done already is skipped, so that a tool that got no answer,
 * or whose predecessor died, goes on where things are. */
#include "memory.h"

#include <fcntl.h>
#include <unistd.h>

#define POSIX CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

static bool is_movable(const struct backing *backing)
{
	return !(backing->flags & (DIAPAUSE_MEMORY_FOREIGN | BACKING_KEPT));
}

static struct backing *find(uint64_t id)
{
	struct backing *backing = id ? backing_from(id) : NULL;

	return backing && backing->id == id && is_movable(backing) ? backing : NULL;
}

/* Are all of these there, with the flags `set` and none of `clear`? */
static bool all_are(const uint64_t *ids, unsigned int n, uint32_t set, uint32_t clear)
{
	for (unsigned int i = 0; i < n; i++) {
		struct backing *backing = find(ids[i]);

		if (!backing || (backing->flags & set) != set || backing->flags & clear)
			return false;
	}
	return true;
}

static enum diapause_status refused(struct diapause_failure *failure, CUresult result, uint64_t id)
{
	*failure = (struct diapause_failure){ .result = result, .id = id };
	return DIAPAUSE_GPU;
}

enum diapause_status handover_export(const uint64_t *ids, unsigned int n, int *fds,
				     struct diapause_failure *failure)
{
	if (!all_are(ids, n, DIAPAUSE_MEMORY_ATTACHED, DIAPAUSE_MEMORY_IMPORTED))
		return DIAPAUSE_STATE;
	for (unsigned int i = 0; i < n; i++) {
		CUresult result = driver_MemExportToShareableHandle(&fds[i], find(ids[i])->real, POSIX, 0);

		if (result == CUDA_SUCCESS)
			continue;
		while (i)
			close(fds[--i]);
		return refused(failure, result, ids[i]);
	}
	return DIAPAUSE_OK;
}

/* Unmap what is mapped; on a refusal everything is as it was. */
static CUresult unmap(struct backing *backing, const struct mapping *end)
{
	for (struct mapping *mapping = backing->mappings; mapping != end; mapping = mapping->next) {
		CUresult result = driver_MemUnmap(mapping->address, mapping->size);

		if (result == CUDA_SUCCESS)
			continue;
		for (struct mapping *again = backing->mappings; again != mapping; again = again->next)
			mapping_make(again, backing->real);
		return result;
	}
	return CUDA_SUCCESS;
}

static CUresult map(struct backing *backing, driver_handle real)
{
	for (struct mapping *mapping = backing->mappings; mapping; mapping = mapping->next) {
		CUresult result = mapping_make(mapping, real);

		if (result == CUDA_SUCCESS)
			continue;
		for (struct mapping *made = backing->mappings; made != mapping; made = made->next)
			driver_MemUnmap(made->address, made->size);
		return result;
	}
	return CUDA_SUCCESS;
}

static CUresult drop(struct backing *backing)
{
	CUresult result = unmap(backing, NULL);

	if (result == CUDA_SUCCESS)
		result = driver_MemRelease(backing->real);
	if (result)
		return result;
	backing_drop_fd(backing);
	backing->flags &= ~(DIAPAUSE_MEMORY_ATTACHED | DIAPAUSE_MEMORY_IMPORTED);
	return CUDA_SUCCESS;
}

enum diapause_status handover_drop(struct diapause_dropped *dropped, struct diapause_failure *failure)
{
	*dropped = (struct diapause_dropped){ 0 };
	for (struct backing *backing = backing_from(0); backing; backing = backing->next) {
		if (!is_movable(backing))
			continue;
		if (backing->flags & DIAPAUSE_MEMORY_ATTACHED) {
			bool inside = context_enter(backing->device);
			CUresult result = drop(backing);

			if (inside)
				context_leave();
			if (result)
				return refused(failure, result, backing->id);
		}
		dropped->bytes += backing->size;
		dropped->count++;
	}
	return DIAPAUSE_OK;
}

static CUresult attach(struct backing *backing, int fd)
{
	CUresult result;

	result = driver_MemImportFromShareableHandle(&backing->real, (void *)(intptr_t)fd, POSIX);
	if (result)
		return result;
	result = map(backing, backing->real);
	if (result) {
		driver_MemRelease(backing->real);
		return result;
	}
	if (backing->name && backing->properties.requestedHandleTypes & POSIX)
		backing->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	backing->flags |= DIAPAUSE_MEMORY_ATTACHED | DIAPAUSE_MEMORY_IMPORTED;
	return CUDA_SUCCESS;
}

enum diapause_status handover_attach(const uint64_t *ids, unsigned int n, const int *fds,
				     struct diapause_failure *failure)
{
	if (!all_are(ids, n, 0, 0))
		return DIAPAUSE_STATE;
	for (unsigned int i = 0; i < n; i++) {
		struct backing *backing = find(ids[i]);
		CUresult result = CUDA_SUCCESS;
		bool inside;

		if (backing->flags & DIAPAUSE_MEMORY_ATTACHED)
			continue;
		inside = context_enter(backing->device);
		result = attach(backing, fds[i]);
		if (inside)
			context_leave();
		if (result)
			return refused(failure, result, ids[i]);
	}
	return DIAPAUSE_OK;
}

bool handover_complete(void)
{
	for (struct backing *backing = backing_from(0); backing; backing = backing->next)
		if (!(backing->flags & DIAPAUSE_MEMORY_ATTACHED))
			return false;
	return true;
}

/* The content of a handle as long as it is copied: at an address of its own, for both. */
static CUresult look_at(const struct backing *backing, CUdeviceptr *address, driver_handle real)
{
	struct mapping view = { .size = backing->size, .accesses = 1 };
	CUresult result = driver_MemAddressReserve(address, backing->size, 0, 0, 0);

	if (result)
		return result;
	view.address = *address;
	view.access[0] = (struct access){ CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
					  backing->device };
	result = mapping_make(&view, real);
	if (result)
		driver_MemAddressFree(*address, backing->size);
	return result;
}

static void look_away(const struct backing *backing, CUdeviceptr address)
{
	driver_MemUnmap(address, backing->size);
	driver_MemAddressFree(address, backing->size);
}

static CUresult copy(const struct backing *backing, driver_handle to)
{
	CUdeviceptr target, source;
	CUresult result = look_at(backing, &target, to);

	if (result)
		return result;
	result = look_at(backing, &source, backing->real);
	if (result == CUDA_SUCCESS) {
		result = driver_MemcpyDtoD_v2(target, source, backing->size);
		if (result == CUDA_SUCCESS)
			result = driver_CtxSynchronize();
		look_away(backing, source);
	}
	look_away(backing, target);
	return result;
}

/* The old memory goes when the new one is mapped in its place; until then a failure changes nothing. */
static CUresult rehome(struct backing *backing)
{
	driver_properties properties = backing->properties;
	driver_handle new, old = backing->real;
	CUresult result;

	properties.requestedHandleTypes |= POSIX;
	result = driver_MemCreate(&new, backing->size, &properties, 0);
	if (result)
		return result;
	result = copy(backing, new);
	if (result == CUDA_SUCCESS)
		result = unmap(backing, NULL);
	if (result == CUDA_SUCCESS) {
		result = map(backing, new);
		if (result)
			map(backing, old);
	}
	if (result) {
		driver_MemRelease(new);
		return result;
	}
	backing->real = new;
	backing->flags &= ~DIAPAUSE_MEMORY_IMPORTED;
	backing_drop_fd(backing);
	driver_MemRelease(old);
	return CUDA_SUCCESS;
}

enum diapause_status handover_rehome(const uint64_t *ids, unsigned int n, struct diapause_failure *failure)
{
	if (!all_are(ids, n, DIAPAUSE_MEMORY_ATTACHED, 0))
		return DIAPAUSE_STATE;
	for (unsigned int i = 0; i < n; i++) {
		struct backing *backing = find(ids[i]);
		CUresult result;
		bool inside;

		if (!(backing->flags & DIAPAUSE_MEMORY_IMPORTED))
			continue;
		inside = context_enter(backing->device);
		result = rehome(backing);
		if (inside)
			context_leave();
		if (result)
			return refused(failure, result, ids[i]);
	}
	return DIAPAUSE_OK;
}
