"""The hash of a block of device memory, as the kernel `diapause_block_hash` computes it on the GPU.

This one is slow: it is what the fast ones are measured against. A 64-bit word stands at its place in the
sum, so words that changed places change it, while words can be taken in any order, by many threads.
"""

from __future__ import annotations

import struct

_MASK = (1 << 64) - 1
_FIRST = 0x9E3779B97F4A7C15
_SECOND = 0xC2B2AE3D27D4EB4F


def _mix(x: int) -> int:
    """The finaliser of murmur3's 64-bit variant, by Austin Appleby (public domain)."""
    x ^= x >> 33
    x = x * 0xFF51AFD7ED558CCD & _MASK
    x ^= x >> 33
    x = x * 0xC4CEB9FE1A85EC53 & _MASK
    return x ^ x >> 33


def of_block(data: bytes, size: int) -> tuple[int, int]:
    """(h1, h2) of `data`, padded with zeros to `size` bytes, a multiple of 8: the block size."""
    padded = data.ljust(size, b"\0")
    first = second = 0
    for place, (word,) in enumerate(struct.iter_unpack("<Q", padded), 1):
        first += _mix(word ^ place * _FIRST & _MASK)
        second += _mix(word + place * _SECOND & _MASK)
    return first & _MASK, second & _MASK
