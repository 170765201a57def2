"""Device memory of others, mapped into the controller's address space for as long as it is copied."""

from __future__ import annotations

from diapause.runtime.gpud.cuda import CudaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.gpud.cuda import Device


class Window:
    """A range of device addresses in which handles are mapped one behind the other. Owns the handles."""

    def __init__(self, device: Device, size: int) -> None:
        """`size`: bytes of everything that will be mapped."""
        self._device = device
        self._size = size
        self._used = 0
        self.address = device.reserve(size)

    def add(self, handle: int, size: int) -> int:
        """Map a handle, which belongs to the window from here on, also when it fails; returns the address.

        The driver refuses a size that the memory does not have: raises CudaError.
        """
        at = self.address + self._used
        try:
            self._device.map(at, size, handle)
        finally:
            self._device.release(handle)  # a mapping keeps the memory
        self._used += size
        return at

    def open(self) -> None:
        """Make everything in it accessible. Raises CudaError."""
        if self._used:
            self._device.allow(self.address, self._used)

    def close(self) -> None:
        """Unmap it; what is held by fds stays. Never raises: there is nothing to be done about it."""
        try:
            if self._used:
                self._device.unmap(self.address, self._used)
            self._device.unreserve(self.address, self._size)
        except CudaError:
            pass
