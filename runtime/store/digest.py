"""blake3 digests of files, all of a file at once or behind a writer."""

from __future__ import annotations

import os

from diapause.runtime.linux import libc
from diapause.runtime.linux.files import open_regular
from diapause.runtime.linux.thread import Flag, Thread
from diapause.runtime.store import layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from blake3 import blake3

_CHUNK = 4 << 20  # bytes per read: large enough for every SIMD lane, small enough to stay in cache
_PARALLEL = 32 << 20  # bytes from which on several threads pay


def text(hasher: blake3) -> str:
    return f"blake3:{hasher.hexdigest()}"


def of_bytes(data: bytes) -> str:
    from blake3 import blake3

    return text(blake3(data))


def of_file(fd: int) -> tuple[int, str]:
    """Size in bytes and digest of the file behind `fd`, whose position does not matter."""
    from blake3 import blake3

    size = os.fstat(fd).st_size
    if size >= _PARALLEL:
        hasher = blake3(max_threads=blake3.AUTO)
        hasher.update_mmap(f"/proc/self/fd/{fd}")
        return size, text(hasher)
    hasher = blake3()
    return _update(hasher, fd, 0), text(hasher)


def _update(hasher: blake3, fd: int, offset: int) -> int:
    """Add what lies behind `offset`; returns the new one."""
    while chunk := os.pread(fd, _CHUNK, offset):
        hasher.update(chunk)
        offset += len(chunk)
    return offset


class Follower:
    """Hashes CRIU's page images while they grow, so that little is left to read at the commit.

    With `sync` it has them written to disk meanwhile too: an fsync of 4.9 GB after the dump took
    as long as the dump itself. Owns a thread and the files' fds; `finish()` or `close()` ends both.
    """

    _PAUSE = 0.01  # seconds between two looks when nothing was new: far below the commit's own cost

    def __init__(self, directory: str, *, sync: bool = False) -> None:
        self._directory = directory
        self._sync = sync
        self._files: dict[str, tuple[blake3, int, int]] = {}  # name: hasher, fd, bytes so far
        self._stop = Flag()
        self._thread = Thread(self._follow)

    def _follow(self) -> None:
        while not self._stop.is_set:
            if not self._look():
                self._stop.wait(self._PAUSE)

    def _look(self) -> bool:
        """Hash what is new; whether anything was."""
        try:
            names = [name for name in os.listdir(self._directory) if _grows(name)]
        except FileNotFoundError:
            return False  # runc has not made it yet
        grown = [self._advance(name) for name in sorted(names)]
        return any(grown)

    def _advance(self, name: str) -> bool:
        from blake3 import blake3

        try:
            if name not in self._files:
                fd = open_regular(f"{self._directory}/{name}")
                self._files[name] = (blake3(max_threads=blake3.AUTO), fd, 0)
            hasher, fd, offset = self._files[name]
            chunk = os.pread(fd, _CHUNK, offset)
            if chunk and self._sync:
                libc.start_writeback(fd, offset, len(chunk))
        except OSError:
            return False  # whoever commits meets the same error and reports it
        hasher.update(chunk)
        self._files[name] = (hasher, fd, offset + len(chunk))
        return bool(chunk)

    def finish(self) -> dict[str, tuple[int, int, str]]:
        """Inode, size and digest of each file followed, read to its end. CRIU has written everything."""
        self._stop.set()
        self._thread.join()
        found = {}
        for name, (hasher, fd, offset) in self._files.items():
            size = _update(hasher, fd, offset)
            found[name] = (os.fstat(fd).st_ino, size, text(hasher))
        self.close()
        return found

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        for _, fd, _ in self._files.values():
            os.close(fd)
        self._files.clear()


def _grows(name: str) -> bool:
    return name.startswith(layout.PAGES_PREFIX) and name.endswith(layout.IMAGE_SUFFIX)
