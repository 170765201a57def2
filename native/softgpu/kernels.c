// SPDX-License-Identifier: Apache-2.0
/* The kernels that the software GPU can run, by entry name. Their meaning is that of the PTX in
 * demo and gpud: one binary runs on hardware and here. The grid does not matter, because all of
 * them loop over their elements. */
#include "softgpu.h"

#include "../gpud/block_hash.h"

#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define MULTIPLIER 6364136223846793005ull
#define INCREMENT 1442695040888963407ull

static uint64_t *words(uint64_t address, uint64_t count, int access)
{
	return address % 8 || count > UINT64_MAX / 8 ? NULL : memory_at(address, count * 8, access);
}

/* fill(u64 *p, u64 n, u64 seed): p[i] = (i + seed) * MULTIPLIER + INCREMENT */
static CUresult fill(const uint64_t *argument)
{
	uint64_t *p = words(argument[0], argument[1], PROT_WRITE);

	if (!p && argument[1])
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	for (uint64_t i = 0; i < argument[1]; i++)
		p[i] = (i + argument[2]) * MULTIPLIER + INCREMENT;
	return CUDA_SUCCESS;
}

/* step(u64 *p, u64 n): p[i] = p[i] * MULTIPLIER + INCREMENT */
static CUresult step(const uint64_t *argument)
{
	uint64_t *p = words(argument[0], argument[1], PROT_READ | PROT_WRITE);

	if (!p && argument[1])
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	for (uint64_t i = 0; i < argument[1]; i++)
		p[i] = p[i] * MULTIPLIER + INCREMENT;
	return CUDA_SUCCESS;
}

/* checksum(u64 *p, u64 n, u64 *sum): atomically *sum += p[i] * (2 i + 1) */
static CUresult checksum(const uint64_t *argument)
{
	uint64_t *p = words(argument[0], argument[1], PROT_READ);
	uint64_t *sum = words(argument[2], 1, PROT_READ | PROT_WRITE), total = 0;

	if ((!p && argument[1]) || !sum)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	for (uint64_t i = 0; i < argument[1]; i++)
		total += p[i] * (2 * i + 1);
	__atomic_fetch_add(sum, total, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

/* spin(u64 ns, u64 *done): takes that long, then atomically *done += 1 */
static CUresult spin(const uint64_t *argument)
{
	struct timespec time = { (time_t)(argument[0] / 1000000000), (long)(argument[0] % 1000000000) };
	uint64_t *done;

	while (nanosleep(&time, &time) < 0)
		;
	done = words(argument[1], 1, PROT_READ | PROT_WRITE);
	if (!done)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	__atomic_fetch_add(done, 1, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

/* diapause_block_hash(u64 *p, u64 bytes, u64 block, u64 *out): see gpud/block_hash.ptx */
static CUresult hash_blocks(const uint64_t *argument)
{
	uint64_t bytes = argument[1], block = argument[2], here;
	uint64_t *p = words(argument[0], bytes / 8, PROT_READ);
	uint64_t *out =
		block ? words(argument[3], (bytes + block - 1) / block * 3, PROT_READ | PROT_WRITE) : NULL;

	if (!bytes)
		return CUDA_SUCCESS;
	if (!p || !out || bytes % 8 || block % 8)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	for (uint64_t at = 0; at < bytes; at += block, out += 3) {
		struct block_hash hash;

		here = bytes - at < block ? bytes - at : block;
		block_hashes(p + at / 8, here, block, &hash);
		out[0] += hash.h1;
		out[1] += hash.h2;
		out[2] |= hash.any;
	}
	return CUDA_SUCCESS;
}

static const struct kernel kernels[] = {
	{ "fill", 3, { 8, 8, 8 }, fill },
	{ "step", 2, { 8, 8 }, step },
	{ "checksum", 3, { 8, 8, 8 }, checksum },
	{ "spin", 2, { 8, 8 }, spin },
	{ "diapause_block_hash", 4, { 8, 8, 8, 8 }, hash_blocks },
};

const struct kernel *kernel_find(const char *name, size_t length)
{
	for (size_t i = 0; i < ARRAY_SIZE(kernels); i++) {
		if (strlen(kernels[i].name) == length && memcmp(kernels[i].name, name, length) == 0)
			return &kernels[i];
	}
	return NULL;
}
