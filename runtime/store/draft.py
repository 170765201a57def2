"""A local snapshot that is being written."""

from __future__ import annotations

import fcntl
import os

from diapause.runtime.linux import files
from diapause.runtime.store import entry, held, room

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.store.entry import Entry


class Draft:
    """A local snapshot that is being written; whoever writes the files gets `fd` or `path`.

    Ends with commit() or abandon(). Dies with the last process that has the descriptor: then whoever comes
    next removes it.
    """

    __slots__ = ("_final", "fd", "name", "path", "tier")

    def __init__(self, name: str, tier: str, path: str, fd: int) -> None:
        self._final = f"{os.path.dirname(path)}/{name}"
        self.name = name
        self.tier = tier  # "disk" or "memory"
        self.path = path
        self.fd = fd

    def commit(self, document: Entry, *, sync: bool) -> None:
        """Give it its name; whoever has the descriptor keeps it from being removed.

        With `sync` it survives a crash of the machine. Raises OSError.
        """
        if sync and self.tier == "disk":
            for name in os.listdir(self.path):
                files.fsync_file(f"{self.path}/{name}")
        entry.write(self.path, document, sync=sync)
        os.unlink(f"{self.path}/{room.RESERVED}")
        fcntl.flock(self.fd, fcntl.LOCK_SH)
        os.rename(self.path, self._final)  # create() made sure that nobody has the name
        self.path = self._final
        if sync:
            files.fsync_directory(os.path.dirname(self.path))

    def abandon(self) -> None:
        """Remove it, also after the commit. The descriptor is closed."""
        if self.fd >= 0:
            try:
                held.remove(self.path)
            finally:
                self.close()

    def close(self) -> None:
        """Let go of it. One that was not committed is then anybody's to remove."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
