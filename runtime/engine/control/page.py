"""The page by which a process with our library says where it listens."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

NAME = "diapause-control-v1"
SIZE = 4096  # bytes of the memfd, whatever the page size of the machine is
MAGIC = int.from_bytes(b"DIAPAUS1", "little")
MAJOR = 1  # the newest that we speak
OLDEST = 1  # and the oldest: the major before, once there is one
MINOR = 1
GATE = 24  # where in the page the gate is

_HEAD = struct.Struct("<QIIiiII")


class Gate(IntEnum):
    """How far the gates of a process are closed."""

    OPEN = 0
    CLOSING = 1  # no call begins, except in a callback of the driver
    CLOSED = 2


class Counter(IntEnum):
    """The counters by their place in the page; a library may have fewer or more."""

    INIT = 0  # successful cuInit calls
    RESOLVED = 1  # cuGetProcAddress answers that lead through the library
    LOOKED_UP = 2  # dlsym answers that were exchanged
    REFUSED = 3  # unknown variants of replaced functions
    ANSWERED = 4  # requests of tools answered well
    REJECTED = 5  # and refused
    DROPPED = 6  # messages that were no request
    FOREIGN = 7  # cuGetProcAddress answers that are no exported function, passed on
    RELEASED = 8  # imported allocations that the process let go of; low half: a futex, woken then


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPage:
    """What a page says. True for the library, a claim for anybody else."""

    major: int
    minor: int
    pid: int  # of the owner, in its own pid namespace
    peer: int  # number of the tool's end in the owner, -1 when nobody answers any more
    gate: int  # a Gate, if it is true
    counters: Mapping[Counter, int]

    @classmethod
    def parse(cls, data: bytes) -> "ControlPage | None":
        """The page in the first SIZE bytes of the memfd; None when it is not one, or not one yet."""
        if len(data) < SIZE:
            return None
        magic, major, minor, pid, peer, gate, _ = _HEAD.unpack_from(data)
        if magic != MAGIC or major == 0 or pid <= 0:
            return None
        counters = parse_counters(data[_HEAD.size : _HEAD.size + 8 * len(Counter)])
        return cls(major=major, minor=minor, pid=pid, peer=peer, gate=gate, counters=counters)


def place(counter: Counter) -> int:
    """Where in the page a counter is."""
    return _HEAD.size + 8 * counter


def parse_counters(data: bytes) -> Mapping[Counter, int]:
    """Eight bytes each; those that we have no name for are left out."""
    values = struct.unpack_from(f"<{len(data) // 8}Q", data)
    return dict(zip(Counter, values, strict=False))
