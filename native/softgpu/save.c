// SPDX-License-Identifier: Apache-2.0
/* Checkpoint and Restore of the device's memory, in the service thread: all of it goes to private
 * memory of this process, where CRIU finds it, and the device is let go. */
#include "softgpu.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096
#define RESIDUE ((size_t)8 << 20)

static char *residue;

static void *private_memory(size_t size)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

static bool zero(const char *at)
{
	return at[0] == 0 && memcmp(at, at + 1, PAGE - 1) == 0;
}

/* Pages of zeros are not written, so memory that nobody used costs nothing. */
static void copy(char *to, const char *from, size_t size)
{
	for (size_t at = 0; at < size; at += PAGE) {
		if (!zero(from + at))
			memcpy(to + at, from + at, PAGE);
	}
}

/* The memory itself: the heap's lies in the open, the rest is mapped for the moment. */
static char *open_memory(const struct physical *p)
{
	char *at;

	if (p->heap)
		return p->heap;
	at = mmap(NULL, p->size, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0);
	return at == MAP_FAILED ? NULL : at;
}

static void close_memory(const struct physical *p, char *at)
{
	if (!p->heap)
		munmap(at, p->size);
}

static CUresult copy_out(struct physical *p)
{
	char *from = open_memory(p);

	p->saved = private_memory(p->size);
	if (from && p->saved)
		copy(p->saved, from, p->size);
	if (from)
		close_memory(p, from);
	return from && p->saved ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static void forget_copies(void)
{
	for (struct physical *p = physicals; p; p = p->next) {
		if (p->saved)
			munmap(p->saved, p->size);
		p->saved = NULL;
	}
}

static void let_go(void)
{
	for (size_t i = 0; i < span_count; i++) {
		struct span *span = spans[i];
		char *shadow = (char *)span->address + span->shadow;

		if (span->kind == SPAN_HEAP)
			shadow_clear(shadow, span->size);
		for (struct mapping *m = span->mappings; m; m = m->next)
			shadow_clear((char *)m->address + span->shadow, m->size);
	}
	for (struct physical *p = physicals; p; p = p->next) {
		if (p->fd >= 0)
			close(p->fd);
		p->fd = -1;
	}
	if (leftover_any())
		return;
	close(device.fd);
	device.fd = -1;
}

/* The driver leaves some of its own in the process, about half of it zeros. */
static void leave_residue(void)
{
	residue = private_memory(RESIDUE);
	for (size_t at = 0; residue && at < RESIDUE; at += PAGE)
		residue[at] = (at / PAGE) & 1;
}

/* Nothing is taken away before every copy is made, so that a failure harms nobody. */
CUresult save_all(void)
{
	if (notify_save() < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (struct physical *p = physicals; p; p = p->next) {
		CUresult result = copy_out(p);

		if (result) {
			forget_copies();
			return notify_load() < 0 ? CUDA_ERROR_DEINITIALIZED : result;
		}
	}
	let_go();
	leave_residue();
	return CUDA_SUCCESS;
}

/* What was imported belonged to another process: the driver cannot bring it back. */
static CUresult copy_in(struct physical *p)
{
	char *to;

	if (p->imported)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (p->heap) {
		if (shadow_map(p->heap, p->size, PROT_READ | PROT_WRITE, -1) < 0)
			return CUDA_ERROR_OUT_OF_MEMORY;
	} else {
		p->fd = device_file(p->size);
		if (p->fd < 0)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	to = open_memory(p);
	if (!to)
		return CUDA_ERROR_OUT_OF_MEMORY;
	copy(to, p->saved, p->size);
	close_memory(p, to);
	munmap(p->saved, p->size);
	p->saved = NULL;
	return CUDA_SUCCESS;
}

static CUresult map_again(const struct span *span)
{
	for (struct mapping *m = span->mappings; m; m = m->next) {
		char *shadow = (char *)m->address + span->shadow;

		if (shadow_map(shadow, m->size, PROT_READ | PROT_WRITE, m->physical->fd) < 0)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

CUresult load_all(void)
{
	CUresult result = CUDA_SUCCESS;

	if (device.fd < 0 && device_open() < 0)
		return CUDA_ERROR_NO_DEVICE;
	for (struct physical *p = physicals; p && !result; p = p->next)
		result = copy_in(p);
	for (size_t i = 0; i < span_count && !result; i++)
		result = map_again(spans[i]);
	if (!result && notify_load() < 0)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (residue)
		munmap(residue, RESIDUE);
	residue = NULL;
	return result;
}
