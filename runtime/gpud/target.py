"""The directory that a save writes into: which files it makes, and that none stays of one that failed."""

from __future__ import annotations

import errno
import os
import threading

from diapause.runtime.linux import filesystem
from diapause.runtime.store import layout

MAX_PARTS = 16  # GPUs that one snapshot can be of
_PER_PART = 256  # data files of one GPU: MAX_FILES of an index by MAX_PARTS


class Target:
    """New files in a directory that the caller keeps open. Threads may ask for them side by side."""

    def __init__(self, directory: int, *, part: int = 0) -> None:
        self.directory = directory
        self.in_memory = filesystem.in_memory(directory)
        self.index_name = index_name(part)
        self._first = part * _PER_PART
        self._count = 0
        self._made: list[str] = []
        self._lock = threading.Lock()

    @property
    def files(self) -> int:
        """How many data files an index has to allow for."""
        return self._first + self._count if self._count else 0

    def _next(self) -> tuple[int, str]:
        with self._lock:
            number = self._first + self._count
            self._count += 1
            return number, layout.gpu_data(number)

    def create(self, *, direct: bool) -> tuple[int, int]:
        """Number and fd of a new data file; with `direct` past the page cache, if the file system can.

        The caller owns the fd. Raises OSError, FileExistsError among them: nothing is replaced.
        """
        number, name = self._next()
        fd = self._open(name, os.O_EXCL | (os.O_DIRECT if direct else 0))
        with self._lock:
            self._made.append(name)
        return number, fd

    def _open(self, name: str, flags: int) -> int:
        flags |= os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            return os.open(name, flags, layout.FILE_MODE, dir_fd=self.directory)
        except OSError as e:
            if not flags & os.O_DIRECT or e.errno != errno.EINVAL:
                raise
        # No direct I/O here; the refused call may have made the file.
        return os.open(name, flags & ~(os.O_DIRECT | os.O_EXCL), layout.FILE_MODE, dir_fd=self.directory)

    def link(self, source: str, directory: int) -> int:
        """Number of a new data file that is another name of `source` in the fd `directory`.

        Raises OSError, with no number used up: something else may take its place.
        """
        with self._lock:
            number = self._first + self._count
            name = layout.gpu_data(number)
            os.link(source, name, src_dir_fd=directory, dst_dir_fd=self.directory, follow_symlinks=False)
            self._count += 1
            self._made.append(name)
        return number

    def write_index(self, data: bytes, *, sync: bool) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(self.index_name, flags, layout.FILE_MODE, dir_fd=self.directory)
        with self._lock:
            self._made.append(self.index_name)
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            if sync:
                os.fsync(fd)
        if sync:
            os.fsync(self.directory)

    def sizes(self) -> list[tuple[str, int]]:
        """Name and size of everything that was made."""
        return [(name, os.stat(name, dir_fd=self.directory).st_size) for name in self._made]

    def remove(self) -> None:
        """Take it all back."""
        for name in self._made:
            try:
                os.unlink(name, dir_fd=self.directory)
            except OSError:
                pass


def index_name(part: int) -> str:
    """The index of the GPU with this position in a snapshot; the first one's is that of a whole snapshot."""
    return layout.GPU_INDEX if part == 0 else f"{layout.GPU_INDEX}.{part}"
