"""Host memory that the GPU reads and writes by itself: faulted in, and registered with the driver."""

from __future__ import annotations

import ctypes
import mmap

from diapause.runtime.linux import libc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.gpud.cuda import Device

_MADV_POPULATE_WRITE = 23  # Linux 5.14; not in Python's mmap

_STEP = 16 << 20  # bytes: some milliseconds


class Region:
    """A mapping that is pinned. Owns it; the thread that makes or closes one has the device active."""

    def __init__(self, device: Device, memory: mmap.mmap) -> None:
        """Pin `memory`, which takes seconds for some GiB. Raises CudaError, with `memory` left open."""
        self._device = device
        self._memory = memory
        self._anchor = ctypes.c_char.from_buffer(memory)
        self.address = ctypes.addressof(self._anchor)
        self.size = len(memory)
        try:
            self._fault_in()
            device.register(self.address, self.size)
        except BaseException:
            del self._anchor
            raise

    def _fault_in(self) -> None:
        """In steps: whoever maps or unmaps anything in this process waits for the end of each."""
        try:
            for offset in range(0, self.size, _STEP):
                size = min(_STEP, self.size - offset)
                libc.madvise(self.address + offset, size, _MADV_POPULATE_WRITE)
        except OSError:
            pass  # an older kernel: registering faults it in, a page at a time

    @classmethod
    def anonymous(cls, device: Device, size: int) -> Region:
        """New memory, in huge pages where the kernel has them to spare."""
        memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        try:
            memory.madvise(mmap.MADV_HUGEPAGE)
        except OSError:
            pass  # a kernel without them
        try:
            return cls(device, memory)
        except BaseException:
            memory.close()
            raise

    def view(self, offset: int, size: int) -> memoryview:
        """A part of it, for reading and writing; the caller releases it before close()."""
        return memoryview(self._memory)[offset : offset + size]

    def close(self) -> None:
        self._device.unregister(self.address)
        del self._anchor
        self._memory.close()
