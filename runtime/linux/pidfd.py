"""Processes held by a file descriptor, so that a reused number never hits a stranger."""

import os
import select

from diapause.runtime.linux import libc
from diapause.runtime.linux.deadline import Deadline


def pidfd_open(pid: int) -> int:
    """A close-on-exec fd of the process; the caller owns it. Raises ProcessLookupError."""
    return os.pidfd_open(pid)


def pidfd_getfd(pidfd: int, number: int) -> int:
    """A close-on-exec duplicate of fd `number` of the process; the caller owns it."""
    return libc.check(libc.syscall(libc.SYS_PIDFD_GETFD, pidfd, number, 0), f"fd {number}")


def pidfd_send_signal(pidfd: int, number: int) -> None:
    """Raises ProcessLookupError when the process is gone."""
    libc.check(libc.syscall(libc.SYS_PIDFD_SEND_SIGNAL, pidfd, number, 0, 0), f"pidfd {pidfd}")


def exited(pidfd: int, deadline: Deadline | None = None) -> bool:
    """Whether the process has ended (a zombie has), now or at the latest at the deadline."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0 if deadline is None else deadline.poll_ms()))
