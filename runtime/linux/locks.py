"""flock(2) on a file: who dies lets go."""

import fcntl
import os


class Lock:
    """An exclusive lock, held until close() or the death of the last process that has the fd."""

    __slots__ = ("_fd", "path")

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self._fd = fd

    @classmethod
    def try_take(cls, path: str) -> "Lock | None":
        """The lock, or None while somebody else holds it. The folder has to exist.

        A file that was removed or replaced between open and lock is not the lock any more: whoever
        comes next would lock another inode, so it is opened anew.
        """
        while True:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _same_file(fd, path):
                    return cls(path, fd)
            except BlockingIOError:
                os.close(fd)
                return None
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)

    def write(self, text: str) -> None:
        """Say in the file who holds it; nobody may depend on it."""
        try:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, text.encode(), 0)
        except OSError:
            pass  # a full disk; the lock itself needs no space

    def close(self) -> None:
        os.close(self._fd)

    def __enter__(self) -> "Lock":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _same_file(fd: int, path: str) -> bool:
    try:
        there = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    here = os.fstat(fd)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)
