"""Another process's mount namespace, entered by a thread that does nothing else."""

from __future__ import annotations

import os

from diapause.runtime.linux import libc, mounts
from diapause.runtime.linux.thread import Thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_CLONE_FS = 0x200
_CLONE_NEWNS = 0x20000
_CHUNK = 1 << 16


class MountNamespace:
    """Owns its fds: the namespace and, whatever its processes call their root, the root of its tree."""

    def __init__(self, pid: int) -> None:
        """Raises OSError, when the process is gone among others."""
        self._fd = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        self.root = -1
        self.table: list[mounts.Mount] = []
        self.is_ours = os.path.samestat(os.fstat(self._fd), os.stat("/proc/self/ns/mnt"))

    def look(self) -> None:
        """Read its table and open its root."""
        ours = os.open("/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        lines: list[bytes] = []

        def inside() -> None:
            self.root = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            # Ours: what is mounted at /proc over there may be anything.
            fd = os.open("thread-self/mountinfo", os.O_RDONLY | os.O_CLOEXEC, dir_fd=ours)
            try:
                while data := os.read(fd, _CHUNK):
                    lines.append(data)
            finally:
                os.close(fd)

        try:
            self.run(inside)
        finally:
            os.close(ours)
        self.table = mounts.table(b"".join(lines))

    def run(self, call: Callable[[], None]) -> None:
        """Run `call` in there; raises what it raises.

        Every path means something else then, and all files are the container's: `call` must not import or
        open anything by a path, system calls on fds apart.
        """
        errors: list[BaseException] = []

        def enter() -> None:
            try:
                libc.unshare(_CLONE_FS)  # of this thread alone; a shared root cannot be changed
                libc.setns(self._fd, _CLONE_NEWNS)
                call()
            except BaseException as error:
                errors.append(error)

        Thread(enter).join()
        if errors:
            raise errors[0]

    def close(self) -> None:
        os.close(self._fd)
        if self.root >= 0:
            os.close(self.root)
