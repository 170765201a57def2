// SPDX-License-Identifier: Apache-2.0
#include "block_hash.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

typedef void hash_all(const uint64_t *words, uint64_t count, uint64_t block, struct block_hash *out);

#define EACH_BLOCK(words, count, block, out)               \
	for (uint64_t at = 0; at < (count); at += (block)) \
	block_hash((out)++, (words) + at, (count) - at < (block) ? (count) - at : (block), (block))

static void plain(const uint64_t *words, uint64_t count, uint64_t block, struct block_hash *out)
{
	EACH_BLOCK(words, count, block, out);
}

#ifdef __x86_64__
/* 64-bit multiplication side by side: made of 32-bit ones, or (with the second) an instruction. */
__attribute__((target("avx2"))) static void wide(const uint64_t *words, uint64_t count, uint64_t block,
						 struct block_hash *out)
{
	EACH_BLOCK(words, count, block, out);
}

__attribute__((target("avx512f,avx512dq,avx512vl"))) static void wider(const uint64_t *words, uint64_t count,
								       uint64_t block, struct block_hash *out)
{
	EACH_BLOCK(words, count, block, out);
}

/* Asked by hand: this compiler's __builtin_cpu_supports knows of no feature. Registers that the kernel
 * does not save must not be used. */
static hash_all *choose(void)
{
	const unsigned avx2 = 1u << 5, avx512 = 1u << 16 | 1u << 17 | 1u << 31; /* F, DQ, VL */
	unsigned eax, ebx, ecx, edx, saved, high;

	if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & bit_OSXSAVE))
		return plain;
	if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx))
		return plain;
	__asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
	if ((saved & 0xe6) == 0xe6 && (ebx & avx512) == avx512)
		return wider;
	return (saved & 6) == 6 && (ebx & avx2) ? wide : plain;
}
#else
static hash_all *choose(void)
{
	return plain;
}
#endif

/* `bytes` and `block` are multiples of 8; `out` has a place for each block that begins in `bytes`. */
void block_hashes(const void *data, uint64_t bytes, uint64_t block, struct block_hash *out)
{
	static hash_all *_Atomic chosen;

	if (!chosen)
		chosen = choose();
	chosen(data, bytes / 8, block / 8, out);
}
