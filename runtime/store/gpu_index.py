"""diapause-gpu.idx: which bytes of which GPU data file belong to which allocation, and their hashes.

Device memory is kept in blocks of 2 MiB. A data file is a row of slots of that size, a block names file and
slot, and one that is all zeros is kept nowhere. docs/snapshot-format.md is the specification. The reader is
strict: everything in an index was perhaps written by somebody else.
"""

from __future__ import annotations

import struct

from diapause.runtime.errors import InvalidArgument

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAGIC = b"DIAPGPU1"
VERSION = 1
BLOCK = 2 << 20  # bytes; a power of two
UUID = 16  # bytes

MAX_DEVICES = 256
MAX_ALLOCATIONS = 1 << 20
MAX_BLOCKS = 1 << 22  # 8 TiB of device memory
MAX_FILES = 4096
MAX_ADDRESS = 1 << 57  # exclusive: five-level paging, the lower half

NOWHERE = 0xFFFFFFFF  # the file number of a block that is all zeros
ZERO = (NOWHERE, 0, 0, 0)

_HEADER = struct.Struct("<8s6I")
_ALLOCATION = struct.Struct("<iIQQQII")
_BLOCK = struct.Struct("<IIQQ")

MAX_BYTES = _HEADER.size + MAX_DEVICES * UUID + MAX_ALLOCATIONS * _ALLOCATION.size + MAX_BLOCKS * _BLOCK.size


class Allocation:
    """A piece of physical device memory as a process held it."""

    __slots__ = ("address", "device", "first_block", "flags", "id", "process", "size")

    def __init__(
        self, *, process: int, device: int, id: int, address: int, size: int, flags: int = 0,
        first_block: int = 0,
    ) -> None:  # fmt: skip
        self.process = process  # as the container's first process sees it
        self.device = device  # position in the table of devices
        self.id = id  # the library's number of it in that process
        self.address = address  # of its first mapping, 0: none
        self.size = size  # bytes of the physical memory
        self.flags = flags  # as the library reported it
        self.first_block = first_block  # Index() sets it: the blocks follow in the order of allocations

    @property
    def blocks(self) -> int:
        """How many blocks it takes; what the last one has too much is zeros."""
        return -(-self.size // BLOCK)

    def _values(self) -> tuple[int, ...]:
        return (self.process, self.device, self.id, self.address, self.size, self.first_block, self.flags)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Allocation) and self._values() == other._values()

    __hash__ = None  # type: ignore[assignment]  # Index() changes it

    def __repr__(self) -> str:
        return f"Allocation(process={self.process}, id={self.id}, size={self.size})"


class Index:
    """The contents of an index. A block is (file, slot, h1, h2), or ZERO."""

    __slots__ = ("allocations", "blocks", "devices", "files")

    def __init__(
        self, *, devices: Sequence[bytes], files: int, allocations: Sequence[Allocation],
        blocks: Sequence[tuple[int, int, int, int]],
    ) -> None:  # fmt: skip
        self.devices = devices  # the UUID of each GPU that held memory, 16 bytes
        self.files = files  # how many data files there are, numbered from 0
        self.allocations = allocations
        self.blocks = blocks  # of the first allocation, then of the second, …
        first = 0
        for allocation in allocations:
            allocation.first_block = first
            first += allocation.blocks

    def of(self, allocation: Allocation) -> Sequence[tuple[int, int, int, int]]:
        """The blocks of one of its allocations."""
        return self.blocks[allocation.first_block : allocation.first_block + allocation.blocks]

    @property
    def bytes(self) -> int:
        """Device memory altogether."""
        return sum(allocation.size for allocation in self.allocations)

    @property
    def zero(self) -> int:
        """Bytes of device memory in blocks that are all zeros."""
        total = 0
        for allocation in self.allocations:
            last = allocation.size - (allocation.blocks - 1) * BLOCK
            places = [block[0] for block in self.of(allocation)]
            total += BLOCK * places[:-1].count(NOWHERE) + last * (places[-1] == NOWHERE)
        return total

    def slots(self) -> list[int]:
        """For each data file, how many slots it must have at least."""
        needed = [0] * self.files
        for file, slot, _, _ in self.blocks:
            if file != NOWHERE and slot >= needed[file]:
                needed[file] = slot + 1
        return needed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Index) and all(
            list(getattr(self, name)) == list(getattr(other, name))
            for name in ("devices", "allocations", "blocks")
        ) and self.files == other.files  # fmt: skip

    __hash__ = None  # type: ignore[assignment]


def encode(index: Index) -> bytes:
    """The file. Raises ValueError for what decode() would refuse."""
    try:
        parts = [
            _HEADER.pack(
                MAGIC, VERSION, BLOCK, len(index.allocations), len(index.blocks), len(index.devices),
                index.files,
            ),
            *index.devices,
            *(_ALLOCATION.pack(*allocation._values()) for allocation in index.allocations),
            *(_BLOCK.pack(*block) for block in index.blocks),
        ]  # fmt: skip
    except struct.error as e:
        raise ValueError(f"gpu index: {e}") from None
    if why := _fault(index):
        raise ValueError(f"gpu index: {why}")
    return b"".join(parts)


def decode(data: bytes, where: str) -> Index:
    """Read an index; `where` names it in errors. Raises InvalidArgument (gpu-index-malformed, -version)."""
    if len(data) < _HEADER.size:
        raise _malformed(where, f"it has {len(data)} bytes, fewer than its header")
    magic, version, block, allocations, blocks, devices, files = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise _malformed(where, f"no index: it begins with {bytes(magic)!r}")
    if version != VERSION:
        raise InvalidArgument(
            "gpu-index-version", where, f"version {version}, this one reads {VERSION}",
            "upgrade Diapause on this host",
        )  # fmt: skip
    if block != BLOCK:
        raise _malformed(where, f"blocks of {block} bytes")
    too_many = (
        f"{count} {what}"
        for count, limit, what in (
            (allocations, MAX_ALLOCATIONS, "allocations"), (blocks, MAX_BLOCKS, "blocks"),
            (devices, MAX_DEVICES, "devices"), (files, MAX_FILES, "files"),
        )
        if count > limit
    )  # fmt: skip
    if why := next(too_many, ""):
        raise _malformed(where, why)
    at_allocations = _HEADER.size + devices * UUID
    at_blocks = at_allocations + allocations * _ALLOCATION.size
    end = at_blocks + blocks * _BLOCK.size
    if len(data) != end:
        raise _malformed(where, f"it has {len(data)} bytes, its header says {end}")
    found = list(_allocations(data[at_allocations:at_blocks]))
    stated = [allocation.first_block for allocation in found]
    index = Index(
        devices=[data[at : at + UUID] for at in range(_HEADER.size, at_allocations, UUID)],
        files=files,
        allocations=found,
        blocks=list(_BLOCK.iter_unpack(data[at_blocks:])),
    )
    if why := _fault(index):
        raise _malformed(where, why)
    for allocation, number in zip(found, stated, strict=True):
        if allocation.first_block != number:
            why = f"block {number} where {allocation.first_block} comes next"
            raise _malformed(where, f"allocation {allocation.id} begins with {why}")
    return index


def _malformed(where: str, why: str) -> InvalidArgument:
    return InvalidArgument(
        "gpu-index-malformed", where, why[:300], "the snapshot is damaged: take it anew or copy it again"
    )


def _allocations(data: bytes) -> Iterator[Allocation]:
    for process, device, id, address, size, first, flags in _ALLOCATION.iter_unpack(data):
        yield Allocation(
            process=process, device=device, id=id, address=address, size=size, flags=flags, first_block=first
        )


def _fault(index: Index) -> str:
    """What contradicts itself in an index, "" for nothing."""
    limits = (
        (index.devices, MAX_DEVICES, "devices"), (index.allocations, MAX_ALLOCATIONS, "allocations"),
        (index.blocks, MAX_BLOCKS, "blocks"),
    )  # fmt: skip
    for values, limit, what in limits:
        if len(values) > limit:
            return f"{len(values)} {what}"
    if not 0 <= index.files <= MAX_FILES:
        return f"{index.files} files"
    if any(len(uuid) != UUID for uuid in index.devices):
        return "a UUID of a wrong length"
    if len(set(index.devices)) != len(index.devices):
        return "a device comes twice"
    return _fault_of_allocations(index) or _fault_of_blocks(index)


def _fault_of_allocations(index: Index) -> str:
    first = 0
    seen = set()
    for a in index.allocations:
        if a.process < 1:
            return f"an allocation of process {a.process}"
        who = f"allocation {a.id} of process {a.process}"
        if (a.process, a.id) in seen:
            return f"{who} comes twice"
        seen.add((a.process, a.id))
        if a.device >= len(index.devices):
            return f"{who} is on device {a.device} of {len(index.devices)}"
        if not 0 < a.size <= MAX_BLOCKS * BLOCK or a.address >= MAX_ADDRESS:
            return f"{who} has {a.size} bytes at 0x{a.address:x}"
        first += a.blocks
    return "" if first == len(index.blocks) else f"{len(index.blocks)} blocks for {first}"


def _fault_of_blocks(index: Index) -> str:
    kept = [block[:2] for block in index.blocks if block[0] != NOWHERE]
    for file, slot in kept:
        if file >= index.files or slot >= MAX_BLOCKS:
            return f"a block in slot {slot} of file {file}, of {index.files} files"
    if len(set(kept)) != len(kept):
        return "two blocks in one slot"
    if any(block != ZERO for block in index.blocks if block[0] == NOWHERE):
        return "a block of zeros with a place or a hash"
    return ""
