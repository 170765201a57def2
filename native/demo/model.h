/* SPDX-License-Identifier: Apache-2.0
 *
 * What an array of words must look like after fill and any number of steps. A step maps each word
 * x to A x + C, the checksum weighs word i with 2 i + 1 and these weights add up to n * n; so the
 * checksum itself goes from s to A s + C n n, and a step of the model costs nothing.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernels.h"

struct model {
	uint64_t words;
	uint64_t seed;
	uint64_t steps;
	uint64_t sum;
};

static inline struct model model_fill(uint64_t words, uint64_t seed)
{
	unsigned __int128 n = words;
	/* sum of i (2 i + 1) for i < n */
	uint64_t weighted = (uint64_t)(n ? (n - 1) * n * (2 * n - 1) / 3 + n * (n - 1) / 2 : 0);
	struct model model = { .words = words, .seed = seed };

	model.sum =
		weighted * KERNEL_MULTIPLIER + (seed * KERNEL_MULTIPLIER + KERNEL_INCREMENT) * words * words;
	return model;
}

static inline void model_step(struct model *model)
{
	model->steps++;
	model->sum = model->sum * KERNEL_MULTIPLIER + KERNEL_INCREMENT * model->words * model->words;
}

/* The same from the words themselves, for memory that the CPU can read. */
static inline uint64_t checksum_words(const uint64_t *p, uint64_t words)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < words; i++)
		sum += p[i] * (2 * i + 1);
	return sum;
}
