"""Hashes of device memory, by the kernel on the GPU; on the CPU where the driver cannot compile it."""

from __future__ import annotations

import ctypes
import threading

from diapause.runtime import native
from diapause.runtime.gpud import log
from diapause.runtime.gpud.cuda import CudaError
from diapause.runtime.gpud.host import Region
from diapause.runtime.gpud.pool import BUFFER
from diapause.runtime.store.blocks import Hashes, triples
from diapause.runtime.store.gpu_index import BLOCK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from diapause.runtime.gpud.cuda import Device, Stream
    from diapause.runtime.gpud.pool import Pool

    Hashed = tuple["Range", list[tuple[int, int, int]]]

KERNEL = "diapause_block_hash"

_WORDS = 3  # a block
_THREADS = 1024  # of a group; it needs 32 registers a thread, so two groups fill a multiprocessor
_AT_ONCE = 512  # blocks: 1 GiB is hashed in less than a millisecond, and copying can begin
_AT_ONCE_SOFTWARE = 32  # there it takes as long as the copy


class Range:
    """Device memory that lies side by side: blocks from `first` on. Only its end may be a part of a block."""

    __slots__ = ("address", "first", "size")

    def __init__(self, address: int, size: int, first: int) -> None:
        self.address = address
        self.size = size
        self.first = first

    @property
    def blocks(self) -> int:
        return -(-self.size // BLOCK)

    def __repr__(self) -> str:
        return f"Range(0x{self.address:x}, {self.size}, {self.first})"


class Hasher:
    """Computes hashes for one job after the other."""

    def __init__(self, device: Device, pool: Pool) -> None:
        self._device = device
        self._pool = pool
        self._at_once = _AT_ONCE_SOFTWARE if device.driver.software else _AT_ONCE
        self._cpu: Hashes | None = None
        self._lock = threading.Lock()
        bytes_ = 8 * _WORDS * self._at_once
        try:
            with open(native.require("lib", "block_hash.ptx"), "rb") as file:
                self._function = device.function(file.read(), KERNEL)
            self._lanes = [_Lane(device, bytes_) for _ in range(2)]
        except CudaError as e:
            log.write("warning", f"blocks are hashed on the CPU: {e}")
            self._cpu = Hashes()

    def run(self, ranges: Iterable[Range]) -> Generator[Hashed, None, None]:
        """(h1, h2, or of all words) of each block, some blocks at a time: the next ones are hashed while
        the caller works on these. One run at a time, others wait: close() the generator.
        """
        parts = _cut(ranges, BUFFER // BLOCK if self._cpu else self._at_once)
        with self._lock:
            yield from self._on_cpu(self._cpu, parts) if self._cpu else self._on_gpu(parts)

    def _on_gpu(self, parts: Iterator[Range]) -> Iterator[Hashed]:
        waiting: list[tuple[_Lane, Range]] = []
        try:
            for number, part in enumerate(parts):
                lane = self._lanes[number % 2]
                lane.start(self._function, part)
                waiting.append((lane, part))
                if len(waiting) == 2:
                    yield _finish(waiting)
            while waiting:
                yield _finish(waiting)
        finally:
            for lane, _ in waiting:
                lane.stream.wait()

    def _on_cpu(self, cpu: Hashes, parts: Iterator[Range]) -> Iterator[Hashed]:
        stream = self._device.stream()
        buffer = self._pool.take()
        try:
            for part in parts:
                stream.to_host(buffer.address, part.address, part.size)
                stream.wait()
                yield part, cpu.at(buffer.address, part.size, BLOCK)
        finally:
            stream.wait()
            stream.close()
            self._pool.give(buffer)


class _Lane:
    """A stream with room for the results of one launch, on the GPU and on the host."""

    def __init__(self, device: Device, size: int) -> None:
        self.stream: Stream = device.stream()
        self._out = device.allocate(size)
        self._host = Region.anonymous(device, -(-size // 4096) * 4096)

    def start(self, function: ctypes.c_void_p, part: Range) -> None:
        size = 8 * _WORDS * part.blocks
        self.stream.clear(self._out, size)
        self.stream.launch(function, part.blocks, _THREADS, part.address, part.size, BLOCK, self._out)
        self.stream.to_host(self._host.address, self._out, size)

    def result(self, blocks: int) -> list[tuple[int, int, int]]:
        self.stream.wait()
        return triples((ctypes.c_uint64 * (_WORDS * blocks)).from_address(self._host.address))


def _finish(waiting: list[tuple[_Lane, Range]]) -> Hashed:
    lane, part = waiting[0]
    result = lane.result(part.blocks)
    del waiting[0]
    return part, result


def _cut(ranges: Iterable[Range], blocks: int) -> Iterator[Range]:
    """The same memory in pieces of at most so many blocks."""
    for whole in ranges:
        for offset in range(0, whole.size, blocks * BLOCK):
            size = min(blocks * BLOCK, whole.size - offset)
            yield Range(whole.address + offset, size, whole.first + offset // BLOCK)
