"""Frames of the control channel as bytes, one frame a message. No I/O here."""

import struct
from dataclasses import dataclass
from enum import IntEnum

from diapause.runtime.engine.control.page import MAJOR, MINOR, OLDEST

MAGIC = int.from_bytes(b"DIPF", "little")
LIMIT = 65536  # bytes, header and payload
FDS = 16  # that may travel with one frame

_HEADER = struct.Struct("<IHHHHIIIII")
_HELLO = struct.Struct("<iIiIQ20s4x")
_SINCE_1 = struct.Struct("<II")
_SOFTWARE = 1


class FrameError(ValueError):
    """Bytes that are no frame, or not the answer that was asked for."""


class Op(IntEnum):
    HELLO = 1
    COUNTERS = 2
    QUIESCE = 3  # since minor 1
    MEMORY = 4
    DEVICES = 5
    EXPORT = 6
    DROP = 7
    ATTACH = 8
    OPEN = 9
    STATS = 10
    REHOME = 11


class Status(IntEnum):
    OK = 0
    BAD_FRAME = 1
    BAD_MAJOR = 2
    BAD_OP = 3
    BAD_EPOCH = 4
    BUSY = 5
    GPU = 6
    STATE = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A request, or an answer: it repeats op, epoch and seq of its request."""

    op: int
    epoch: int  # one use of the channel by one tool
    seq: int
    payload: bytes = b""
    status: int = Status.OK
    major: int = MAJOR
    minor: int = MINOR
    nfds: int = 0  # file descriptors that go with a request; decode() has compared those of an answer

    def encode(self) -> bytes:
        if _HEADER.size + len(self.payload) > LIMIT:
            raise FrameError(f"payload of {len(self.payload)} bytes")
        if self.nfds > FDS:
            raise FrameError(f"{self.nfds} file descriptors")
        kind = (self.major, self.minor, self.op, self.nfds, self.epoch, self.seq)
        return _HEADER.pack(MAGIC, *kind, len(self.payload), self.status, 0) + self.payload

    @classmethod
    def decode(cls, message: bytes, *, fds: int = 0) -> "Frame":
        """The frame that one message with `fds` file descriptors is. Raises FrameError."""
        if not _HEADER.size <= len(message) <= LIMIT:
            raise FrameError(f"message of {len(message)} bytes")
        magic, major, minor, op, nfds, epoch, seq, length, status, _ = _HEADER.unpack_from(message)
        payload = message[_HEADER.size :]
        if magic != MAGIC:
            raise FrameError(f"magic {magic:#x}")
        if length != len(payload):
            raise FrameError(f"length {length} with {len(payload)} bytes")
        if nfds != fds or nfds > FDS:
            raise FrameError(f"{nfds} file descriptors announced, {fds} came")
        if not OLDEST <= major <= MAJOR and status != Status.BAD_MAJOR:
            raise FrameError(f"major {major}")
        return cls(
            op=op, epoch=epoch, seq=seq, payload=payload, status=status, major=major, minor=minor, nfds=nfds
        )

    def answers(self, request: "Frame") -> bool:
        return (self.op, self.epoch, self.seq) == (request.op, request.epoch, request.seq)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """What a library says about itself; but for the gate the same before a checkpoint and after it."""

    pid: int  # in its own pid namespace
    software: bool  # the real library behind it is the software GPU
    driver: int  # as cuDriverGetVersion, 0 if that is unknown
    functions: int  # of the table that the real library has
    real_path: int  # path_hash() of the real library's path
    build_id: bytes  # of the library, all zero if it has none
    thread: int = 0  # the control thread in its own pid namespace, 0: a library before minor 1
    gate: int = 0  # a Gate

    @classmethod
    def parse(cls, payload: bytes) -> "Hello":
        """A newer library may have appended something. Raises FrameError."""
        if len(payload) < _HELLO.size:
            raise FrameError(f"hello of {len(payload)} bytes")
        pid, flags, driver, functions, real_path, build_id = _HELLO.unpack_from(payload)
        thread = gate = 0
        if len(payload) >= _HELLO.size + _SINCE_1.size:
            thread, gate = _SINCE_1.unpack_from(payload, _HELLO.size)
        return cls(
            pid=pid,
            software=bool(flags & _SOFTWARE),
            driver=driver,
            functions=functions,
            real_path=real_path,
            build_id=build_id,
            thread=thread,
            gate=gate,
        )


def path_hash(path: str) -> int:
    """FNV-1a, 64 bits: tells paths apart without telling them."""
    value = 0xCBF29CE484222325
    for byte in path.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value
