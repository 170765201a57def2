# SPDX-License-Identifier: Apache-2.0
"""In a file of its own: Triton reads the source of what it compiles."""

import triton  # type: ignore[import-not-found]
import triton.language as tl  # type: ignore[import-not-found]


@triton.jit
def step(words, count, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < count
    x = tl.load(words + places, mask=inside)
    tl.store(words + places, x * 6364136223846793005 + 1442695040888963407, mask=inside)
