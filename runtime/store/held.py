"""A directory of the local store and the lock on it: shared for whoever uses it, exclusive for a change."""

from __future__ import annotations

import errno
import fcntl
import os

from diapause.runtime.store import entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.store.entry import Entry

PART = ".part-"  # being written
GONE = ".gone-"  # being removed


class Held:
    """A local snapshot that is not removed until close(). Owns the descriptor of its directory."""

    __slots__ = ("entry", "fd", "name", "path")

    def __init__(self, name: str, path: str, fd: int, entry: Entry) -> None:
        self.name = name
        self.path = path
        self.fd = fd
        self.entry = entry

    def touch(self) -> None:
        """Note that it was used now."""
        os.utime(self.fd)

    def close(self) -> None:
        os.close(self.fd)

    def __enter__(self) -> Held:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def hold(name: str, path: str) -> Held | None:
    """The snapshot there, with a shared lock; None if there is none, or it is about to go."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as e:
        if e.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return None
        raise
    try:
        fcntl.flock(fd, fcntl.LOCK_SH)  # waits for somebody who looks or removes: neither takes long
        return Held(name, path, fd, entry.read(f"/proc/self/fd/{fd}"))
    except FileNotFoundError:
        os.close(fd)
        return None
    except BaseException:
        os.close(fd)
        raise


def is_busy(path: str) -> bool:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def remove_idle(path: str) -> bool:
    """Remove a directory unless somebody holds a lock on it; whether it is gone."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove(path)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True


def remove(path: str) -> None:
    """First out of sight, so that nobody sees half of it."""
    top, name = os.path.split(path)
    gone = path
    if not name.startswith(GONE):
        gone = f"{top}/{GONE}{name}-{os.urandom(3).hex()}"
        os.rename(path, gone)
    for each in os.listdir(gone):
        os.unlink(f"{gone}/{each}")  # the store is flat
    os.rmdir(gone)
