"""The pinned pool: buffers between device memory and files, ready before anybody needs them."""

from __future__ import annotations

import os
import queue
import threading

from diapause.runtime.errors import Unavailable
from diapause.runtime.gpud import log
from diapause.runtime.gpud.cuda import CudaError
from diapause.runtime.gpud.host import Region
from diapause.runtime.store.gpu_index import BLOCK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.gpud.calm import Calm
    from diapause.runtime.gpud.cuda import Device

BUFFER = 8 * BLOCK  # bytes: large enough for the rate of a disk, small enough for many writers
_REGION = 4 * BUFFER  # bytes that are pinned at once: the driver lets nobody else in meanwhile
_NICE = 10
_PATIENCE = 60.0  # seconds for a buffer to come free: the file system behind it is stuck by then


def copiers() -> int:
    """How many threads write or read files for a copy, with two buffers each.

    A core writes 1 to 3 GB/s into memory. Two cores are left out: the driver and CRIU work meanwhile, and
    with a copier on every core the driver's checkpoint took 0.75 s in place of 0.32.
    """
    return max(2, min(16, len(os.sched_getaffinity(0)) - 2))


def give_way() -> None:
    """Have this thread run when others need not: who copies waits for the GPU and for files anyway."""
    try:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
    except OSError:
        pass  # somebody lowered it further


class Buffer:
    """A piece of pinned memory, of BUFFER bytes."""

    __slots__ = ("address", "view")

    def __init__(self, region: Region, offset: int) -> None:
        self.address = region.address + offset
        self.view = region.view(offset, BUFFER)


class Pool:
    """Buffers for whoever copies. They are made in the background: the first ones can be used at once."""

    def __init__(self, device: Device, size: int, calm: Calm) -> None:
        """`size`: bytes; at least two buffers are made whatever it says."""
        self._calm = calm
        self.ready = 0  # bytes that are pinned
        self._free: queue.SimpleQueue[Buffer] = queue.SimpleQueue()
        self._device = device
        self._regions: list[Region] = []  # they live as long as the process
        self._size = max(size // BUFFER, 2) * BUFFER
        self._why = ""
        threading.Thread(target=self._fill, name="pool", daemon=True).start()

    def _fill(self) -> None:
        try:
            give_way()
            self._device.activate()
            while self.ready < self._size:
                region = Region.anonymous(self._device, min(_REGION, self._size - self.ready))
                self._regions.append(region)
                for offset in range(0, region.size, BUFFER):
                    self._free.put(Buffer(region, offset))
                self.ready += region.size
                if self.ready >= 2 * copiers() * BUFFER:  # until then a copy waits for us
                    self._calm.wait()
        except (CudaError, OSError) as e:
            self._why = str(e)
            log.write("warning", f"the pinned pool stays at {self.ready} bytes: {e}")

    def take(self) -> Buffer:
        """A buffer, when one is free. Raises Unavailable when none comes."""
        waited = 0.0
        while waited < _PATIENCE:
            try:
                return self._free.get(timeout=0.1)
            except queue.Empty:
                waited += 0.1
                if self._why and not self.ready:
                    break
        raise Unavailable(
            "gpud-no-buffer", "copy of GPU memory", self._why or "every buffer of the pinned pool is in use",
            "look whether the disk answers; give [gpu] pool more, or the host more memory",
        )  # fmt: skip

    def give(self, buffer: Buffer) -> None:
        self._free.put(buffer)
