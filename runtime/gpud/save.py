"""From device memory into a snapshot: hash, plan, copy, all at once; the index last."""

from __future__ import annotations

from contextlib import closing

from diapause.runtime.gpud.hasher import Range
from diapause.runtime.gpud.piece import Places, cut, runs
from diapause.runtime.gpud.segment_sink import SegmentSink
from diapause.runtime.gpud.writers import LIMIT, Writers
from diapause.runtime.store import digest, gpu_index
from diapause.runtime.store.gpu_index import BLOCK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from diapause.runtime.gpud.gpu import Gpu
    from diapause.runtime.gpud.hasher import Hashed
    from diapause.runtime.gpud.holdings import Held
    from diapause.runtime.gpud.job import Job
    from diapause.runtime.gpud.target import Target

_DIRECT = 1 << 30  # bytes from which on a snapshot that has to be on the disk does not pass the page cache:
# less than that is soon read again, by the client that packs the image


class Save:
    """What a job does; the memory is mapped, and stays as it is until it is over."""

    def __init__(self, gpu: Gpu, target: Target, held: Sequence[Held], *, sync: bool) -> None:
        self._gpu = gpu
        self._target = target
        self._held = held
        self._sync = sync and not target.in_memory

    def run(self, job: Job) -> dict[str, Any]:
        gpu = self._gpu
        blocks = sum(held.blocks for held in self._held)
        places = Places(blocks)
        direct = self._sync and job.total >= _DIRECT
        files = Writers(gpu, self._target, places, job, direct=direct, sync=self._sync)
        sink = None
        try:
            if gpu.segments.serves(self._target):
                sink = SegmentSink(gpu.device, gpu.segments, self._target, places, job)
            self._copy(job, places, files, sink)
            job.phase("hashed")
            into_segments = sink.finish() if sink else 0
            into_files = files.finish()
            job.phase("copied")
            index = self._index(places)
            data = gpu_index.encode(index)
            self._target.write_index(data, sync=self._sync)
        except BaseException:
            files.stop()
            self._target.remove()
            raise
        finally:
            if sink:
                sink.close()
        way = "segments" if into_segments and not into_files else "direct" if direct else "buffered"
        return {
            "zero": index.zero, "written": into_segments + into_files, "way": way,
            "files": self._target.sizes(), "index": digest.of_bytes(data),
        }  # fmt: skip

    def _copy(self, job: Job, places: Places, files: Writers, sink: SegmentSink | None) -> None:
        """Hash everything, and hand what is not zero to whoever keeps it."""
        with closing(self._gpu.hasher.run(ranges(self._held))) as parts:
            self._copy_parts(parts, job, places, files, sink)

    def _copy_parts(
        self, parts: Iterable[Hashed], job: Job, places: Places, files: Writers, sink: SegmentSink | None
    ) -> None:
        for part, hashes in parts:
            job.check()
            places.hashed(part.first, hashes)
            wanted = [any_ for _, _, any_ in hashes]
            kept = 0
            for piece in runs(part, wanted):
                kept += piece.size
                rest = sink.put(piece) if sink else piece
                for small in cut(rest, LIMIT) if rest else ():
                    files.put(small)
            job.advance(part.size - kept)
            if sink:
                sink.settle()

    def _index(self, places: Places) -> gpu_index.Index:
        return gpu_index.Index(
            devices=[self._gpu.device.uuid],
            files=self._target.files,
            allocations=[held.allocation() for held in self._held],
            blocks=places.blocks(),
        )


def ranges(held: Iterable[Held]) -> list[Range]:
    """The memory that is mapped side by side, in as few ranges as there are."""
    found: list[Range] = []
    first = 0
    for each in held:
        last = found[-1] if found else None
        if last and last.size % BLOCK == 0 and last.address + last.size == each.at:
            last.size += each.size
        else:
            found.append(Range(each.at, each.size, first))
        first += each.blocks
    return found
