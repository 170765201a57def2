/* SPDX-License-Identifier: Apache-2.0
 *
 * The hash of blocks of device memory, on the CPU. block_hash.ptx computes the same on the GPU, and
 * runtime/store/block_hash.py says what it is.
 */
#pragma once

#include <stdint.h>

struct block_hash {
	uint64_t h1, h2;
	uint64_t any; /* all words or'ed: 0 for a block of zeros */
};

/* The finaliser of murmur3's 64-bit variant, by Austin Appleby (public domain). */
static inline uint64_t block_mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ull;
	return x ^ (x >> 33);
}

static inline void block_add(struct block_hash *hash, uint64_t word, uint64_t place)
{
	hash->h1 += block_mix(word ^ place * 0x9e3779b97f4a7c15ull);
	hash->h2 += block_mix(word + place * 0xc2b2ae3d27d4eb4full);
	hash->any |= word;
}

/* The first `present` words of a block of `all` words; the others are zeros. Inlined, so that each
 * caller is compiled for a machine of its own. */
static inline __attribute__((always_inline)) void block_hash(struct block_hash *hash, const uint64_t *words,
							     uint64_t present, uint64_t all)
{
	struct block_hash sum = { 0, 0, 0 };

	for (uint64_t i = 0; i < present; i++)
		block_add(&sum, words[i], i + 1);
	for (uint64_t i = present; i < all; i++)
		block_add(&sum, 0, i + 1);
	*hash = sum;
}

void block_hashes(const void *data, uint64_t bytes, uint64_t block, struct block_hash *out);
