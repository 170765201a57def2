"""Everything that is wrong with a snapshot."""

from __future__ import annotations

from diapause.runtime.errors import DiapauseError
from diapause.runtime.store.gpu_data import GpuData
from diapause.runtime.store.snapshot import Snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from diapause.runtime.cli.snapshot.target import Target
    from diapause.runtime.store.gpu_data import Damage
    from diapause.runtime.store.local import Local

SOUND, FAILED, DAMAGED, ELSEWHERE = 0, 1, 3, 4  # exit codes; 2 is a wrong use of the command line
WORDS = {SOUND: "sound", FAILED: "not checked", DAMAGED: "damaged", ELSEWHERE: "not here"}

_ELSEWHERE = {"snapshot-local-missing"}
_CANNOT_TELL = {  # nobody knows whether it is damaged
    "gpu-index-version", "native-missing", "snapshot-feature", "snapshot-incomplete", "snapshot-missing",
    "snapshot-version",
}  # fmt: skip


class Fault:
    """One thing that is wrong."""

    __slots__ = ("allocation", "code", "file", "status", "text")

    def __init__(self, *, status: int, code: str, file: str, text: str, allocation: Any = None) -> None:
        self.status = status
        self.code = code
        self.file = file  # "" if it is not about one
        self.text = text
        self.allocation = allocation  # {process, id, offset_bytes}, None if it is not about one


def faults(
    target: Target, local: Local, *, contents: bool, progress: Callable[[int], None]
) -> Iterator[Fault]:
    """Go on as far as it makes sense, so that one damage does not hide the others."""
    try:
        if target.local is not None and not target.image:
            yield from _of_local(target.local.name, local, contents=contents, progress=progress)
            return
        with Snapshot.open(target.image, compare=False) as snapshot:
            for file, error in snapshot.faults(contents=contents):
                yield _of_error(error, file)
            if snapshot.document.gpu_data is not None:
                with GpuData.open(snapshot, local) as data:
                    yield from _of_blocks(data, contents=contents, progress=progress)
    except DiapauseError as error:
        yield _of_error(error, "")


def _of_local(name: str, local: Local, *, contents: bool, progress: Callable[[int], None]) -> Iterator[Fault]:
    with local.open(name) as held:
        data = GpuData.of_directory(held.path, held.fd, held.entry.index)
        yield from _of_blocks(data, contents=contents, progress=progress)


def _of_blocks(data: GpuData, *, contents: bool, progress: Callable[[int], None]) -> Iterator[Fault]:
    for damage in data.damages(progress) if contents else ():
        yield _of_damage(damage)


def _of_damage(damage: Damage) -> Fault:
    from diapause.runtime.store import layout

    a = damage.allocation
    return Fault(
        status=DAMAGED, code="gpu-block", file=layout.gpu_data(damage.file), text=str(damage),
        allocation={"process": a.process, "id": a.id, "offset_bytes": damage.offset},
    )  # fmt: skip


def _of_error(error: DiapauseError, file: str) -> Fault:
    status = DAMAGED
    if error.code in _ELSEWHERE:
        status = ELSEWHERE
    elif error.code in _CANNOT_TELL:
        status = FAILED
    text = f"{error.why}; {error.todo}" if status != DAMAGED and error.todo else error.why
    return Fault(status=status, code=error.code, file=file, text=text)
