"""The hash of blocks of device memory on the CPU, by the C code that belongs to this installation."""

from __future__ import annotations

import ctypes

from diapause.runtime import native

_WORDS = 3  # a block: h1, h2, all words or'ed


class Hashes:
    """Computes hashes; one for as many threads as want it, and the GIL is free meanwhile."""

    def __init__(self) -> None:
        library = ctypes.CDLL(native.require("lib", "libdiapause-blocks.so"))
        self._function = library.diapause_block_hashes
        self._function.restype = None
        self._function.argtypes = (ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p)

    def at(self, address: int, size: int, block: int) -> list[tuple[int, int, int]]:
        """(h1, h2, or of all words) of each block that begins in `size` bytes at an address of this process.

        `size` and `block` are multiples of 8 bytes; a short last block is filled up with zeros.
        """
        count = -(-size // block)
        out = (ctypes.c_uint64 * (_WORDS * count))()
        self._function(address, size, block, out)
        return triples(out)

    def of(self, data: bytes | bytearray, block: int) -> list[tuple[int, int, int]]:
        """The same of bytes, whose number is a multiple of 8. A bytearray is not copied."""
        if len(data) % 8:
            raise ValueError(f"{len(data)} bytes are no whole words")
        kind = ctypes.c_char * len(data)
        place = kind.from_buffer(data) if isinstance(data, bytearray) else kind.from_buffer_copy(data)
        return self.at(ctypes.addressof(place), len(data), block)


def triples(words: ctypes.Array[ctypes.c_uint64]) -> list[tuple[int, int, int]]:
    """The hashes of blocks as the kernel and the C function leave them."""
    flat = words[:]
    return list(zip(flat[0::3], flat[1::3], flat[2::3], strict=True))
