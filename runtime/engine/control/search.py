"""Finding the control page of a process among its file descriptors."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from diapause.runtime.engine.control.page import NAME, SIZE, ControlPage
from diapause.runtime.linux import proc
from diapause.runtime.linux.pidfd import exited, pidfd_getfd, pidfd_open

_LINK = f"/memfd:{NAME} (deleted)"
_CANDIDATES = 16  # a program may call any number of its own memfds by our name
_F_GET_SEALS = 1034
_F_SEAL_SHRINK = 2


def find(pid: int) -> ControlPage | None:
    """The control page of a process, None if it has no valid one of its own.

    A child that inherited the page of its parent without having it closed has none. Raises
    PermissionError when this process may not look into that one.
    """
    try:
        pidfd = pidfd_open(pid)
    except ProcessLookupError:
        return None
    try:
        return locate(pid, pidfd)
    finally:
        os.close(pidfd)


def locate(pid: int, pidfd: int) -> ControlPage | None:
    """find() for a process that is held by `pidfd`, so that `pid` stays its number."""
    with opened(pid, pidfd) as found:
        return None if found is None else found[1]


@contextmanager
def opened(pid: int, pidfd: int) -> Iterator[tuple[int, ControlPage] | None]:
    """locate(), and a duplicate of the memfd that is closed at the end."""
    found = _own(pid, pidfd)
    try:
        yield found
    finally:
        if found is not None:
            os.close(found[0])


def _own(pid: int, pidfd: int) -> tuple[int, ControlPage] | None:
    try:
        own = proc.namespaced_pids(pid)[-1:]
        for number in _candidates(pid):
            found = _read(pidfd, number)
            if found is None:
                continue
            if [found[1].pid] == own and not exited(pidfd):
                return found
            os.close(found[0])
    except (FileNotFoundError, ProcessLookupError):
        pass  # it ended while we looked
    return None


def _candidates(pid: int) -> Iterator[int]:
    """Numbers of fds whose link reads as ours, the lowest first. Reading a link opens nothing."""
    folder = f"/proc/{pid}/fd"
    found = 0
    for number in sorted(int(name) for name in os.listdir(folder)):
        try:
            target = os.readlink(f"{folder}/{number}")
        except FileNotFoundError:
            continue
        if target == _LINK and found < _CANDIDATES:
            found += 1
            yield number


def _read(pidfd: int, number: int) -> tuple[int, ControlPage] | None:
    """The page behind an fd of the process, which is told from an imitation by its seals, and an fd.

    The fd is duplicated and not opened anew: opening what the link leads to could block, or do
    something to a device. It is read and never mapped: an unsealed one could shrink below us.
    """
    try:
        fd = pidfd_getfd(pidfd, number)
    except OSError as error:
        if isinstance(error, PermissionError | ProcessLookupError):
            raise
        return None
    page = None
    try:
        if fcntl.fcntl(fd, _F_GET_SEALS) & _F_SEAL_SHRINK:
            page = ControlPage.parse(os.pread(fd, SIZE, 0))
    except OSError:  # not a memfd
        pass
    if page is None:
        os.close(fd)
        return None
    return fd, page
