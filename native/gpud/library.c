// SPDX-License-Identifier: Apache-2.0
/* libdiapause-blocks.so: the hash for programs on the host, which load it at run time. */
#include "block_hash.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT void diapause_block_hashes(const void *data, uint64_t bytes, uint64_t block, struct block_hash *out);

void diapause_block_hashes(const void *data, uint64_t bytes, uint64_t block, struct block_hash *out)
{
	block_hashes(data, bytes, block, out);
}
