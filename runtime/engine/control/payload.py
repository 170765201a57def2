"""What the requests and answers about memory carry, as bytes. No I/O here."""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntFlag
from typing import Any

from diapause.runtime.engine.control.frame import FrameError, Op

IDS = 16  # allocations that one request may name
ALLOCATIONS = 1 << 20  # more than that no process has: a list without an end
DEVICES = 256

_QUIESCE = struct.Struct("<II")
_QUIET = struct.Struct("<IIII")
_MEMORY = struct.Struct("<QQQQII")
_DEVICE = struct.Struct("<16sII")
_DROPPED = struct.Struct("<QII")
_FAILURE = struct.Struct("<iIQ")
_STATS = struct.Struct("<14Q")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quiet:
    """What was waited for: at the end of it in an answer, still there in a refusal."""

    captures: int  # streams that capture a graph
    inside: int  # threads inside a call of the driver
    contexts: int  # that were drained

    @classmethod
    def parse(cls, payload: bytes) -> "Quiet":
        captures, inside, contexts, _ = _only(_QUIET, payload)
        return cls(captures=captures, inside=inside, contexts=contexts)


class MemoryFlag(IntFlag):
    """Where an allocation comes from and what can be done with it; a newer library may set more."""

    ATTACHED = 1  # it has memory now
    IMPORTED = 2  # the controller brought it back and has its fd; exported again only after rehome()
    FOREIGN = 4  # the program imported it: it cannot be taken away
    SHARED = 8  # the program exported it
    SLAB = 16  # small allocations share it
    PROGRAM = 32  # made by the program with cuMemCreate


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Device memory of a process, as its library keeps it."""

    id: int  # counts up in a process, never used again
    address: int  # of its first mapping in the process, 0: mapped nowhere
    size: int  # bytes of device memory
    used: int  # bytes that the program asked for
    device: int  # ordinal in the process
    flags: MemoryFlag


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device as a process numbers it."""

    uuid: bytes  # 16 bytes
    ordinal: int
    contexts: int  # that live on it


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """What is away at the moment."""

    size: int  # bytes
    count: int

    @classmethod
    def parse(cls, payload: bytes) -> "Dropped":
        size, count, _ = _only(_DROPPED, payload)
        return cls(size=size, count=count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A call of the driver that the library made for us and that did not work."""

    result: int  # CUresult
    id: int  # of the allocation, 0: of none

    @classmethod
    def parse(cls, payload: bytes) -> "Failure":
        result, _, id_ = _only(_FAILURE, payload)
        return cls(result=result, id=id_)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Bytes of device memory by the way they took, and numbers of what has to be known before."""

    tracked: int  # cuMemAlloc, in handles of their own
    slab: int  # cuMemAlloc, in shared handles
    program: int  # cuMemCreate by the program
    foreign: int  # imported by the program
    asynchronous: int  # stream-ordered: the driver's to save
    managed: int  # the driver refuses to checkpoint it
    pinned: int  # host memory that the program made with the driver
    native: int  # cuMemAlloc that the library left to the driver
    allocations: int  # of cuMemAlloc, in tracked and slab
    ipc_given: int  # legacy IPC handles asked for
    ipc_opened: int  # and opened: memory of other processes
    multicast: int  # live multicast objects: the driver's checkpoint hangs
    managed_count: int  # live managed allocations
    foreign_count: int  # live imports of the program

    @classmethod
    def parse(cls, payload: bytes) -> "Stats":
        """A newer library may have appended something. Raises FrameError."""
        if len(payload) < _STATS.size:
            raise FrameError(f"stats of {len(payload)} bytes")
        return cls(**dict(zip(cls.__slots__, _STATS.unpack_from(payload), strict=True)))


def quiesce(timeout_ms: int) -> bytes:
    return _QUIESCE.pack(min(max(timeout_ms, 0), 2**32 - 1), 0)


def ids(names: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(names)}Q", *names)


def parse_memory(payload: bytes, first: int) -> tuple[Memory, ...]:
    """One frame of the list, which goes on from id `first` upwards. Raises FrameError."""
    found = []
    for id_, address, size, used, device, flags in _each(_MEMORY, payload):
        if id_ < first or not id_:
            raise FrameError(f"allocation {id_} after {first}")
        if size >= 2**48 or used > size or address >= 2**63 - size:
            raise FrameError(f"allocation {id_} of {size} bytes, {used} used, at {address:#x}")
        memory = Memory(id=id_, address=address, size=size, used=used, device=device, flags=MemoryFlag(flags))
        found.append(memory)
        first = id_ + 1
    return tuple(found)


def parse_devices(payload: bytes) -> tuple[Device, ...]:
    """Raises FrameError, also for a device that is named twice."""
    devices = tuple(
        Device(uuid=uuid, ordinal=ordinal, contexts=contexts)
        for uuid, ordinal, contexts in _each(_DEVICE, payload)
    )
    if len(devices) > DEVICES or len({device.ordinal for device in devices}) < len(devices):
        raise FrameError(f"{len(devices)} devices with numbers that repeat")
    return devices


def check_ids(payload: bytes, asked: Sequence[int]) -> None:
    """The answer names what was asked for. Raises FrameError."""
    if payload != ids(asked):
        raise FrameError(f"an answer about other allocations than {list(asked)}")


def minor_of(op: Op) -> int:
    """The minor version of the library that brought `op`."""
    return 0 if op <= Op.COUNTERS else 1


def _only(layout: struct.Struct, payload: bytes) -> tuple[int, ...]:
    if len(payload) < layout.size:
        raise FrameError(f"{len(payload)} bytes where {layout.size} belong")
    return layout.unpack_from(payload)


def _each(layout: struct.Struct, payload: bytes) -> Iterator[tuple[Any, ...]]:
    if len(payload) % layout.size:
        raise FrameError(f"{len(payload)} bytes in a list of {layout.size} each")
    return layout.iter_unpack(payload)
