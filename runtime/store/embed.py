"""Make an image directory whole: the GPU data that lies in the local store is copied into it."""

from __future__ import annotations

import os

from diapause.runtime.errors import FailedPrecondition, InvalidArgument
from diapause.runtime.store import layout, manifest
from diapause.runtime.store import snapshot as snapshots
from diapause.runtime.store.gpu_data import GpuData, fault_of_block
from diapause.runtime.store.gpu_index import BLOCK
from diapause.runtime.store.snapshot import Snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from diapause.runtime.store.local import Local
    from diapause.runtime.store.manifest import Manifest

_SUFFIX = ".embed"  # of a data file that is not complete


def embed(path: str, local: Local, progress: Callable[[int], None] = lambda _: None) -> Manifest:
    """Returns the new manifest; `progress` gets the bytes copied so far.

    The index stays as it is, so replacing the manifest is the only step that counts: whatever ends this
    before leaves the snapshot as it was.

    Raises FailedPrecondition (embed-needless, embed-no-space), InvalidArgument (embed-damaged) and what
    opening does.
    """
    where = f"snapshot {path}"
    with Snapshot.open(path) as snapshot:
        stated = snapshot.document.gpu_data
        if stated is None or stated["placement"] == "embedded":
            why = "it has everything in its directory already" if stated else "it has no GPU data"
            raise FailedPrecondition("embed-needless", where, why, "use it as it is")
        with GpuData.open(snapshot, local) as data:
            _check_space(path, where, data)
            sizes = _copy(path, where, data, progress)
        document = snapshot.document
        document.raw["files"] = sorted(
            [*document.raw["files"], *_entries(sizes)], key=lambda file: str(file["name"])
        )
        document.raw["gpu_data"] = {**stated, "placement": "embedded", "name": "", "host": ""}
        snapshots.commit(path, document, sync=True)
        return document


def _check_space(path: str, where: str, data: GpuData) -> None:
    needed = sum(1 for _ in data.kept()) * BLOCK
    found = os.statvfs(path)
    free = found.f_bavail * found.f_frsize
    if needed > free:
        why = f"{needed} bytes of GPU data do not fit: {free} bytes are free there"
        raise FailedPrecondition(
            "embed-no-space", where, why, "make room, or copy the directory elsewhere first"
        )


def _copy(path: str, where: str, data: GpuData, progress: Callable[[int], None]) -> dict[str, int]:
    """Copy every data file, slot by slot, under its own name; {name: bytes}."""
    from diapause.runtime.store.blocks import Hashes

    hashes, done, sizes = Hashes(), 0, {}
    kept: list[list[tuple[int, list[int]]]] = [[] for _ in range(data.index.files)]
    for _, _, (file, slot, *expected) in data.kept():
        kept[file].append((slot, expected))
    for number, slots in enumerate(data.index.slots()):
        if not slots:
            continue
        name = layout.gpu_data(number)
        source = data.open_file(number, slots)
        target = -1
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            target = os.open(f"{path}/{name}{_SUFFIX}", flags, layout.FILE_MODE)
            for slot, expected in sorted(kept[number]):
                _copy_slot(source, target, slot)
                if why := fault_of_block(hashes, target, slot, expected):
                    why = f"{name} in {data.where} {why} at byte {slot * BLOCK}"
                    raise InvalidArgument("embed-damaged", where, why, "see `diapause snapshot verify`")
                done += BLOCK
                progress(done)
            os.fsync(target)
            sizes[name] = os.fstat(target).st_size
            os.rename(f"{path}/{name}{_SUFFIX}", f"{path}/{name}")
        except BaseException:
            _discard(path, [f"{name}{_SUFFIX}", *sizes])
            raise
        finally:
            os.close(source)
            if target >= 0:
                os.close(target)
    return sizes


def _copy_slot(source: int, target: int, slot: int) -> None:
    view = memoryview(os.pread(source, BLOCK, slot * BLOCK))
    offset = slot * BLOCK
    while view:
        count = os.pwrite(target, view, offset)
        view, offset = view[count:], offset + count


def _discard(path: str, names: list[str]) -> None:
    for name in names:
        try:
            os.unlink(f"{path}/{name}")
        except FileNotFoundError:
            pass


def _entries(sizes: dict[str, int]) -> list[dict[str, object]]:
    return [{"name": name, "size": size, "digest": manifest.BY_INDEX} for name, size in sizes.items()]
