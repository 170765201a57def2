"""From device memory into files: through pinned buffers, by several threads, each with a file of its own.

A file of its own, because writers of one file wait for each other in the kernel. A thread copies its next
piece off the GPU while it writes the one before; it has two buffers, so a slow disk slows the copy down.
"""

from __future__ import annotations

import errno
import os
import queue
import threading

from diapause.runtime.gpud.pool import BUFFER, copiers, give_way
from diapause.runtime.linux import libc
from diapause.runtime.store.gpu_index import BLOCK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.gpud.cuda import Stream
    from diapause.runtime.gpud.gpu import Gpu
    from diapause.runtime.gpud.job import Job
    from diapause.runtime.gpud.piece import Piece, Places
    from diapause.runtime.gpud.pool import Buffer
    from diapause.runtime.gpud.target import Target

LIMIT = BUFFER // BLOCK  # blocks of a piece
_AHEAD = 32 * BUFFER  # bytes of a file that are given their place on the disk at once


class Writers:
    """Threads that keep pieces, in whatever order they get them."""

    def __init__(
        self, gpu: Gpu, target: Target, places: Places, job: Job, *, direct: bool, sync: bool
    ) -> None:
        self._device = gpu.device
        self._pool = gpu.pool
        self._target = target
        self._places = places
        self._job = job
        self._direct = direct
        self._sync = sync
        self._pieces: queue.SimpleQueue[Piece | None] = queue.SimpleQueue()
        self._error: BaseException | None = None
        self._threads: list[threading.Thread] = []
        self._written = 0  # bytes, under the lock
        self._lock = threading.Lock()

    def put(self, piece: Piece) -> None:
        """Keep a piece of at most LIMIT blocks. Threads are started as there is work for them."""
        self._pieces.put(piece)
        if len(self._threads) < copiers():
            thread = threading.Thread(target=self._run, name="writer", daemon=True)
            self._threads.append(thread)
            thread.start()

    def finish(self) -> int:
        """Wait until everything is kept; the bytes written. Raises what stopped a writer."""
        for _ in self._threads:
            self._pieces.put(None)
        for thread in self._threads:
            thread.join()
        if self._error is not None:
            raise self._error
        return self._written

    def stop(self) -> None:
        """Give up, and wait for those that are in the middle."""
        self._error = self._error or RuntimeError("given up")
        for _ in self._threads:
            self._pieces.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        try:
            give_way()
            self._device.activate()
            with _Lane(self) as lane:
                self._work(lane)
                lane.file.close()
        except BaseException as e:  # raised again by finish()
            with self._lock:
                self._error = self._error or e

    def _work(self, lane: _Lane) -> None:
        piece = self._pieces.get()
        if piece is not None:
            lane.fetch(piece)
        while piece is not None and self._error is None:
            following = self._already()
            if following is not None:
                lane.fetch(following)
            lane.write(piece)
            if following is None and (following := self._pieces.get()) is not None:
                lane.fetch(following)
            piece = following

    def _already(self) -> Piece | None:
        """The next piece if there is one by now; the end stays in the queue."""
        try:
            piece = self._pieces.get_nowait()
        except queue.Empty:
            return None
        if piece is None:
            self._pieces.put(None)
        return piece

    def kept(self, piece: Piece, file: int, slot: int) -> None:
        self._places.keep(piece, file, slot)
        with self._lock:
            self._written += piece.blocks * BLOCK
        self._job.advance(piece.size)

    def open(self) -> _File:
        number, fd = self._target.create(direct=self._direct)
        return _File(number, fd, direct=self._direct, sync=self._sync)

    def lane_parts(self) -> tuple[Stream, Buffer]:
        buffer = self._pool.take()
        try:
            return self._device.stream(), buffer
        except BaseException:
            self._pool.give(buffer)
            raise

    def give_back(self, stream: Stream, buffer: Buffer) -> None:
        stream.wait()
        stream.close()
        self._pool.give(buffer)


class _Lane:
    """A writer's file and its two buffers, each with a stream."""

    def __init__(self, writers: Writers) -> None:
        self._writers = writers
        self._turns: list[tuple[Stream, Buffer]] = []
        self._fetched = 0
        self._stored = 0
        self.file = writers.open()

    def fetch(self, piece: Piece) -> None:
        """Start to copy a piece off the GPU; two can be under way."""
        turn = self._fetched % 2
        if turn == len(self._turns):
            self._turns.append(self._writers.lane_parts())
        self._fetched += 1
        stream, buffer = self._turns[turn]
        stream.to_host(buffer.address, piece.address, piece.size)

    def write(self, piece: Piece) -> None:
        """Write the piece that was fetched first."""
        stream, buffer = self._turns[self._stored % 2]
        stream.wait()
        slot = self.file.append(buffer.view, piece)
        self._stored += 1
        self._writers.kept(piece, self.file.number, slot)

    def __enter__(self) -> _Lane:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.abandon()
        for stream, buffer in self._turns:
            self._writers.give_back(stream, buffer)


class _File:
    """A data file, which grows at its end by whole slots. Owns the fd."""

    def __init__(self, number: int, fd: int, *, direct: bool, sync: bool) -> None:
        self.number = number
        self._fd = fd
        self._direct = direct
        self._sync = sync
        self._end = 0  # bytes
        self._placed = 0  # bytes

    def append(self, view: memoryview, piece: Piece) -> int:
        """Write the piece that lies in `view`; returns its slot."""
        size = piece.blocks * BLOCK
        if size > piece.size:
            view[piece.size : size] = bytes(size - piece.size)  # the rest of a short block is zeros
        if self._direct and self._end + size > self._placed:
            self._place()
        done = 0
        while done < size:
            done += os.pwrite(self._fd, view[done:size], self._end + done)
        if self._sync and not self._direct:
            libc.start_writeback(self._fd, self._end, size)
        slot = self._end // BLOCK
        self._end += size
        return slot

    def _place(self) -> None:
        """Have blocks of the disk set aside, many at a time; not every file system can."""
        try:
            os.posix_fallocate(self._fd, self._placed, _AHEAD)
        except OSError as e:
            if e.errno in (errno.ENOSPC, errno.EDQUOT):
                return  # what is written may still fit
        self._placed += _AHEAD

    def close(self) -> None:
        """End it where its contents end, on the disk if that was asked for."""
        if self._placed > self._end:
            os.ftruncate(self._fd, self._end)
        if self._sync:
            os.fsync(self._fd)
        self.abandon()

    def abandon(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
