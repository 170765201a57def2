"""From a snapshot into device memory: read, copy, clear what is zeros, verify every block on the GPU."""

from __future__ import annotations

from contextlib import ExitStack, closing

from diapause.runtime import errors
from diapause.runtime.gpud.piece import Piece, cut
from diapause.runtime.gpud.readers import Readers, Source
from diapause.runtime.gpud.save import ranges
from diapause.runtime.gpud.writers import LIMIT
from diapause.runtime.store.gpu_index import BLOCK, NOWHERE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from diapause.runtime.gpud.bring_back import Wanted
    from diapause.runtime.gpud.gpu import Gpu
    from diapause.runtime.gpud.hasher import Hashed, Range
    from diapause.runtime.gpud.holdings import Held
    from diapause.runtime.gpud.job import Job

    Block = tuple[int, int, int, int]  # file, slot, h1, h2

_SEGMENT_LIMIT = 512  # blocks that are copied at once where no buffer is between


class Load:
    """What a job does: fill memory that is mapped, empty and nobody's yet. Owns the sources."""

    def __init__(self, gpu: Gpu, sources: dict[int, Source], held: Sequence[Held], wanted: Wanted) -> None:
        self._gpu = gpu
        self._sources = sources
        self._ranges = ranges(held)
        self._blocks = wanted.blocks  # of the memory in `held`, in its order
        self._digest = wanted.digest

    def run(self, job: Job) -> dict[str, Any]:
        with ExitStack() as stack:
            for source in self._sources.values():
                stack.callback(source.close)
            zero = self._clear(job)
            from_segments, from_files = self._fill(job)
        job.phase("copied")
        self._verify(job)
        job.phase("verified")
        direct = any(source.direct for source in self._sources.values())
        way = "segments" if from_segments and not from_files else "direct" if direct else "buffered"
        return {
            "zero": zero, "written": from_segments + from_files, "way": way, "files": [],
            "index": self._digest,
        }  # fmt: skip

    def _clear(self, job: Job) -> int:
        """Zeros where the index has nothing; the driver promises nothing about new memory."""
        stream = self._gpu.device.stream()
        zero = 0
        try:
            for part in self._ranges:
                for piece in neighbours(part, self._blocks, kept=False, limit=part.blocks):
                    stream.clear(piece.address, piece.size)
                    zero += piece.size
        finally:
            stream.wait()
            stream.close()
        job.advance(zero)
        return zero

    def _fill(self, job: Job) -> tuple[int, int]:
        """Bytes that came from segments, and from files."""
        readers = Readers(self._gpu, job)
        streams = [self._gpu.device.stream() for _ in range(2)]
        from_segments = number = pending = 0
        try:
            for part in self._ranges:
                for piece in neighbours(part, self._blocks, kept=True, limit=_SEGMENT_LIMIT):
                    file, slot, _, _ = self._blocks[piece.first]
                    segment = self._gpu.segments.find(self._sources[file].fd)
                    if segment is None:
                        for small in cut(piece, LIMIT):
                            readers.put(small, self._sources[file], slot + small.first - piece.first)
                        continue
                    at = segment.region.address + slot * BLOCK
                    streams[number % 2].to_device(piece.address, at, piece.size)
                    number += 1
                    pending += piece.size
                    from_segments += piece.size
                    if number % 2 == 0:
                        for stream in streams:
                            stream.wait()
                        job.advance(pending)
                        pending = 0
            from_files = readers.finish()
        except BaseException:
            readers.stop()
            raise
        finally:
            for stream in streams:
                stream.wait()
                stream.close()
        job.advance(pending)
        return from_segments, from_files

    def _verify(self, job: Job) -> None:
        """Compare what lies in device memory now with what the index says. Raises InvalidArgument."""
        with closing(self._gpu.hasher.run(self._ranges)) as parts:
            for part, hashes in parts:
                job.check()
                self._compare((part, hashes))

    def _compare(self, found: Hashed) -> None:
        part, hashes = found
        expected = self._blocks[part.first : part.first + part.blocks]
        for number, ((h1, h2, any_), (file, slot, e1, e2)) in enumerate(zip(hashes, expected, strict=True)):
            good = not any_ if file == NOWHERE else (h1, h2) == (e1, e2)
            if not good:
                where = "zeros" if file == NOWHERE else f"slot {slot} of data file {file}"
                raise errors.InvalidArgument(
                    "gpu-data-damaged", "load of GPU memory",
                    f"block {part.first + number} ({where}) is not what the index says",
                    "copy the snapshot again, or take it anew",
                )  # fmt: skip


def neighbours(part: Range, blocks: Sequence[Block], *, kept: bool, limit: int) -> Iterator[Piece]:
    """The blocks of `part` that are kept (or zeros), in pieces whose slots follow each other."""
    start = 0
    while start < part.blocks:
        file, slot, _, _ = blocks[part.first + start]
        end = start + 1
        while end < part.blocks and end - start < limit:
            next_file, next_slot, _, _ = blocks[part.first + end]
            if next_file != file or (file != NOWHERE and next_slot != slot + end - start):
                break
            end += 1
        if (file != NOWHERE) == kept:
            size = min(end * BLOCK, part.size) - start * BLOCK
            yield Piece(part.address + start * BLOCK, size, part.first + start)
        start = end
