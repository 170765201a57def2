"""What is copied at once: neighbouring blocks of device memory that are kept side by side in a file."""

from __future__ import annotations

from array import array

from diapause.runtime.store.gpu_index import BLOCK, NOWHERE, ZERO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from diapause.runtime.gpud.hasher import Range


class Piece:
    """`size` bytes of device memory at `address`: the blocks from `first` on."""

    __slots__ = ("address", "first", "size")

    def __init__(self, address: int, size: int, first: int) -> None:
        self.address = address
        self.size = size
        self.first = first

    @property
    def blocks(self) -> int:
        return -(-self.size // BLOCK)

    def split(self, blocks: int) -> tuple[Piece, Piece]:
        """The first so many blocks, and the others."""
        size = blocks * BLOCK
        rest = Piece(self.address + size, self.size - size, self.first + blocks)
        return Piece(self.address, size, self.first), rest


def runs(part: Range, wanted: Sequence[object]) -> Iterator[Piece]:
    """The blocks of `part` whose entry in `wanted` is true, neighbours in one piece."""
    start = None
    for number in range(part.blocks + 1):
        good = number < part.blocks and bool(wanted[number])
        if start is not None and not good:
            end = min(number * BLOCK, part.size)
            yield Piece(part.address + start * BLOCK, end - start * BLOCK, part.first + start)
            start = None
        if good and start is None:
            start = number


def cut(piece: Piece, blocks: int) -> Iterator[Piece]:
    """The same in pieces of at most so many blocks."""
    while piece.blocks > blocks:
        first, piece = piece.split(blocks)
        yield first
    yield piece


class Places:
    """Where each block of a save is kept, written by whoever keeps it; each block by one thread."""

    def __init__(self, blocks: int) -> None:
        self._file = array("I", [NOWHERE]) * blocks
        self._slot = array("Q", [0]) * blocks
        self._h1 = array("Q", [0]) * blocks
        self._h2 = array("Q", [0]) * blocks

    def hashed(self, first: int, hashes: Sequence[tuple[int, int, int]]) -> None:
        """The hashes of the blocks from `first` on; those of blocks that nobody keeps are not used."""
        end = first + len(hashes)
        self._h1[first:end] = array("Q", [h1 for h1, _, _ in hashes])
        self._h2[first:end] = array("Q", [h2 for _, h2, _ in hashes])

    def keep(self, piece: Piece, file: int, slot: int) -> None:
        for number in range(piece.blocks):
            self._file[piece.first + number] = file
            self._slot[piece.first + number] = slot + number

    def blocks(self) -> list[tuple[int, int, int, int]]:
        """As the index has them."""
        return [
            ZERO if file == NOWHERE else (file, slot, h1, h2)
            for file, slot, h1, h2 in zip(self._file, self._slot, self._h1, self._h2, strict=True)
        ]
