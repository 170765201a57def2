"""From device memory straight into segments of the memory tier."""

from __future__ import annotations

from diapause.runtime.gpud import log
from diapause.runtime.store.gpu_index import BLOCK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.gpud.cuda import Device
    from diapause.runtime.gpud.job import Job
    from diapause.runtime.gpud.piece import Piece, Places
    from diapause.runtime.gpud.segments import Segment, Segments
    from diapause.runtime.gpud.target import Target

_STREAMS = 2  # one has work while the other is waited for


class SegmentSink:
    """Fills one segment after the other, as long as there are any."""

    def __init__(self, device: Device, segments: Segments, target: Target, places: Places, job: Job) -> None:
        self._segments = segments
        self._target = target
        self._places = places
        self._job = job
        self._streams = [device.stream() for _ in range(_STREAMS)]
        self._taken: list[Segment] = []
        self._number = -1  # of the data file that the last segment is
        self._slot = 0  # the first free one in it
        self._turn = 0
        self._refused = False  # the directory takes no segment
        self._written = 0  # bytes
        self._pending = [0] * _STREAMS  # bytes under way

    def put(self, piece: Piece) -> Piece | None:
        """Start to copy a piece; what is left of it when there is no segment any more."""
        rest: Piece | None = piece
        while rest is not None:
            room = self._taken[-1].slots - self._slot if self._taken else 0
            if not room and not self._next():
                return rest
            room = self._taken[-1].slots - self._slot
            piece, rest = rest.split(room) if rest.blocks > room else (rest, None)
            self._copy(piece)
        return None

    def _next(self) -> bool:
        segment = None if self._refused else self._segments.take()
        if segment is None:
            return False
        try:
            self._number = self._segments.give(segment, self._target)
        except OSError as e:  # another mount of the same file system, for instance
            self._segments.release(segment)
            self._refused = True
            log.write("warning", f"the memory tier is left out: {e}")
            return False
        self._taken.append(segment)
        self._slot = 0
        return True

    def _copy(self, piece: Piece) -> None:
        at = self._taken[-1].region.address + self._slot * BLOCK
        self._streams[self._turn].to_host(at, piece.address, piece.size)
        if short := piece.blocks * BLOCK - piece.size:
            view = self._taken[-1].region.view(self._slot * BLOCK + piece.size, short)
            view[:] = bytes(short)
        self._places.keep(piece, self._number, self._slot)
        self._slot += piece.blocks
        self._pending[self._turn] += piece.size
        self._written += piece.blocks * BLOCK

    def settle(self) -> None:
        """Wait for what was under way at the last settle(); what was put since then goes on meanwhile."""
        self._turn = (self._turn + 1) % _STREAMS
        self._streams[self._turn].wait()
        done, self._pending[self._turn] = self._pending[self._turn], 0
        self._job.advance(done)

    def finish(self) -> int:
        """Wait for everything; the bytes written."""
        for _ in self._streams:
            self.settle()
        return self._written

    def close(self) -> None:
        for stream in self._streams:
            stream.wait()
            stream.close()
        for segment in self._taken:
            self._segments.release(segment)
