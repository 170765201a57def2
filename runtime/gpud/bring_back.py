"""Making the memory that an index asks for, and opening what it is filled from."""

from __future__ import annotations

import time

from diapause.runtime import errors
from diapause.runtime.gpud import holders
from diapause.runtime.gpud.cuda import OUT_OF_MEMORY, CudaError
from diapause.runtime.gpud.holdings import Held
from diapause.runtime.gpud.readers import Source
from diapause.runtime.gpud.window import Window
from diapause.runtime.linux.files import open_regular, read_regular
from diapause.runtime.store import digest, gpu_index, layout
from diapause.runtime.store.gpu_index import NOWHERE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from diapause.runtime.gpud.cuda import Device

_TICK = 0.05  # seconds between two tries to get GPU memory


class Wanted:
    """The part of an index that one GPU has to bring back."""

    def __init__(self, index: gpu_index.Index, digest_: str, uuid: bytes) -> None:
        """What was on the GPU `uuid`; all of an index of one GPU, wherever that was."""
        only = len(index.devices) == 1
        self.digest = digest_
        self.allocations = [a for a in index.allocations if only or index.devices[a.device] == uuid]
        self.blocks = [block for a in self.allocations for block in index.of(a)]
        self.files = sorted({block[0] for block in self.blocks if block[0] != NOWHERE})

    @property
    def bytes(self) -> int:
        return sum(allocation.size for allocation in self.allocations)


def read_index(directory: int, name: str, expected: str) -> tuple[gpu_index.Index, str]:
    """The index in a directory and its digest. Raises NotFound, InvalidArgument."""
    where = f"GPU data {name}"
    try:
        data = read_regular(name, limit=gpu_index.MAX_BYTES, dir_fd=directory)
    except FileNotFoundError:
        raise errors.NotFound(
            "gpu-index-missing", where, "there is none", "copy the snapshot again, or take it anew"
        ) from None
    found = digest.of_bytes(data)
    if expected and found != expected:
        raise errors.InvalidArgument(
            "gpu-index-digest", where, f"its digest is {found}, not {expected}",
            "copy the snapshot again, or take it anew",
        )  # fmt: skip
    return gpu_index.decode(data, where), found


def open_sources(directory: int, files: Sequence[int]) -> dict[int, Source]:
    """The data files by number; the caller closes them. Raises NotFound, OSError."""
    found: dict[int, Source] = {}
    try:
        for number in files:
            name = layout.gpu_data(number)
            found[number] = Source(name, open_regular(name, dir_fd=directory))
    except FileNotFoundError:
        _close(found)
        raise errors.NotFound(
            "gpu-data-missing", "load of GPU memory", f"there is no {name}",
            "copy the snapshot again, or take it anew",
        ) from None  # fmt: skip
    except BaseException:
        _close(found)
        raise
    return found


def _close(sources: dict[int, Source]) -> None:
    for source in sources.values():
        source.close()


def make(device: Device, wanted: Wanted, *, patience: float, nvml: str) -> tuple[list[Held], Window | None]:
    """New memory for everything that is wanted, mapped side by side.

    Tries for `patience` seconds while the GPU has not enough: an earlier owner may be about to end.
    Raises Unavailable, with nothing left behind, InvalidArgument for sizes that the GPU cannot have.
    """
    for allocation in wanted.allocations:
        if allocation.size % device.granularity:
            raise errors.InvalidArgument(
                "gpu-data-granularity", "load of GPU memory",
                f"an allocation has {allocation.size} bytes, no multiple of {device.granularity}",
                "restore on the kind of GPU that it was taken on",
            )  # fmt: skip
    if not wanted.allocations:
        return [], None
    end = time.monotonic() + patience
    window = Window(device, wanted.bytes)
    made: list[Held] = []
    try:
        for a in wanted.allocations:
            handle = _create(device, a.size, end)
            if handle is None:
                raise _short(device, wanted, sum(held.size for held in made), nvml)
            try:
                fd = device.export(handle)
            except BaseException:
                device.release(handle)
                raise
            held = Held([a.process, a.id, a.size, a.address, a.flags], fd)
            made.append(held)
            held.at = window.add(handle, a.size)
        window.open()
    except BaseException:
        window.close()
        for held in made:
            held.close()
        raise
    return made, window


def _create(device: Device, size: int, end: float) -> int | None:
    """A handle, None when there was no memory until the end."""
    while True:
        try:
            return device.create(size)
        except CudaError as e:
            if e.result != OUT_OF_MEMORY:
                raise
            if time.monotonic() >= end:
                return None
        time.sleep(_TICK)


def _short(device: Device, wanted: Wanted, made: int, nvml: str) -> errors.Unavailable:
    free, total = device.memory()
    needed = wanted.bytes - made
    why = f"{_mib(wanted.bytes)} are needed, {_mib(free + made)} of {_mib(total)} are free"
    if named := holders.describe(nvml, device.uuid):
        why += f"; {named}"
    if needed > total:
        return errors.Unavailable("gpu-memory", "load of GPU memory", why, "use a GPU with more memory")
    return errors.Unavailable(
        "gpu-memory", "load of GPU memory", why, "end what holds memory there, or wait for it, and repeat"
    )


def _mib(size: int) -> str:
    return f"{size >> 20} MiB"
