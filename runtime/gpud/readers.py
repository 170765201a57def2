"""From files into device memory: through pinned buffers, by several threads."""

from __future__ import annotations

import os
import queue
import threading

from diapause.runtime import errors
from diapause.runtime.gpud.pool import copiers, give_way
from diapause.runtime.linux import filesystem
from diapause.runtime.store.gpu_index import BLOCK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.gpud.cuda import Stream
    from diapause.runtime.gpud.gpu import Gpu
    from diapause.runtime.gpud.job import Job
    from diapause.runtime.gpud.piece import Piece
    from diapause.runtime.gpud.pool import Buffer


class Source:
    """A data file of a snapshot, open for reading. Owns the fd."""

    def __init__(self, name: str, fd: int) -> None:
        self.name = name
        self.fd = fd
        self.direct = not filesystem.in_memory(fd) and not _cached(fd) and self._reopen()

    def _reopen(self) -> bool:
        """Read past the page cache; whether the file system can. A file that is in it is read from there."""
        try:
            fd = os.open(f"/proc/self/fd/{self.fd}", os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
        except OSError:
            return False
        os.close(self.fd)
        self.fd = fd
        return True

    def read(self, buffer: Buffer, piece: Piece, slot: int) -> None:
        """Fill a buffer with the slots of a piece. Raises OSError, InvalidArgument for a short file."""
        size = piece.blocks * BLOCK
        done = 0
        while done < size:
            count = os.preadv(self.fd, [buffer.view[done:size]], slot * BLOCK + done)
            if count == 0:
                raise errors.InvalidArgument(
                    "gpu-data-short", "load of GPU memory",
                    f"{self.name} ends before slot {slot + done // BLOCK}",
                    "copy the snapshot again, or take it anew",
                )  # fmt: skip
            done += count

    def close(self) -> None:
        os.close(self.fd)


def _cached(fd: int) -> bool:
    """Whether its first bytes are in the page cache."""
    try:
        return os.preadv(fd, [bytearray(4096)], 0, os.RWF_NOWAIT) > 0
    except OSError:
        return False


class Readers:
    """Threads that fetch pieces, each with two buffers: one is read into while the GPU copies the other."""

    def __init__(self, gpu: Gpu, job: Job) -> None:
        self._device = gpu.device
        self._pool = gpu.pool
        self._job = job
        self._tasks: queue.SimpleQueue[tuple[Piece, Source, int] | None] = queue.SimpleQueue()
        self._error: BaseException | None = None
        self._threads: list[threading.Thread] = []
        self._read = 0  # bytes, under the lock
        self._lock = threading.Lock()

    def put(self, piece: Piece, source: Source, slot: int) -> None:
        """Fetch a piece that fits into a buffer, from `slot` on."""
        self._tasks.put((piece, source, slot))
        if len(self._threads) < copiers():
            thread = threading.Thread(target=self._run, name="reader", daemon=True)
            self._threads.append(thread)
            thread.start()

    def finish(self) -> int:
        """Wait until everything is there; the bytes read. Raises what stopped a reader."""
        self._end()
        if self._error is not None:
            raise self._error
        return self._read

    def stop(self) -> None:
        """Give up, and wait for those that are in the middle."""
        self._error = self._error or RuntimeError("given up")
        self._end()

    def _end(self) -> None:
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        turns: list[tuple[Stream, Buffer]] = []
        try:
            give_way()
            self._device.activate()
            self._work(turns)
        except BaseException as e:  # raised again by finish()
            with self._lock:
                self._error = self._error or e
        for stream, buffer in turns:
            stream.wait()
            stream.close()
            self._pool.give(buffer)

    def _work(self, turns: list[tuple[Stream, Buffer]]) -> None:
        number = 0
        while self._error is None and (task := self._tasks.get()) is not None:
            piece, source, slot = task
            if len(turns) < 2:
                buffer = self._pool.take()
                turns.append((self._device.stream(), buffer))
            stream, buffer = turns[number % 2]
            stream.wait()  # for the copy out of this buffer
            source.read(buffer, piece, slot)
            stream.to_device(piece.address, buffer.address, piece.size)
            number += 1
            with self._lock:
                self._read += piece.blocks * BLOCK
            self._job.advance(piece.size)
