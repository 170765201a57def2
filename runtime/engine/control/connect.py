"""Finding the library's end of the channel in a process, and nobody else's."""

import os
import socket
import stat
import struct

from diapause.runtime import errors
from diapause.runtime.engine.control.channel import Channel, version_mismatch
from diapause.runtime.engine.control.page import MAJOR, OLDEST, ControlPage
from diapause.runtime.engine.control.search import locate
from diapause.runtime.linux.deadline import Deadline
from diapause.runtime.linux.pidfd import pidfd_getfd


def connect(pid: int, pidfd: int, deadline: Deadline) -> Channel:
    """A channel to the library in process `pid`, which the caller holds by `pidfd` and keeps.

    Raises NotFound for a process without a control page of its own, FailedPrecondition when its
    library is of another version or has stopped to answer, Internal when what is there is no library
    of ours, Unavailable when it does not answer in time.
    """
    page = locate(pid, pidfd)
    if page is None:
        raise errors.NotFound(
            "control-page-missing",
            f"connect to process {pid}",
            "it holds no control page of its own",
            "a process is managed when our library is its libcuda and cuInit has succeeded",
        )
    if not OLDEST <= page.major <= MAJOR:
        raise version_mismatch(pid, page.major)
    channel = Channel(pid, _take(pid, pidfd, page))
    try:
        if channel.hello(deadline).pid != page.pid:
            raise _impostor(pid, "it answers for another process")
    except BaseException:
        channel.close()
        raise
    return channel


def _take(pid: int, pidfd: int, page: ControlPage) -> socket.socket:
    """The tool's end, if the number in the page really leads to one."""
    if page.peer < 0:
        raise errors.FailedPrecondition(
            "control-closed",
            f"connect to process {pid}",
            "its control thread has ended: the program closed file descriptors that are not its own",
            "a program that closes all descriptors has to do so before it calls cuInit",
        )
    try:
        fd = pidfd_getfd(pidfd, page.peer)
    except OSError as error:
        if isinstance(error, PermissionError | ProcessLookupError):
            raise
        raise _impostor(pid, f"fd {page.peer}: {error.strerror}") from error
    if not stat.S_ISSOCK(os.fstat(fd).st_mode):
        os.close(fd)
        raise _impostor(pid, f"fd {page.peer} is no socket")
    end = socket.socket(fileno=fd)
    try:
        wrong = _wrong_socket(end, pid)
    except OSError as error:
        wrong = f"{error.strerror}"
    if wrong:
        end.close()
        raise _impostor(pid, f"fd {page.peer} is {wrong}")
    return end


def _wrong_socket(end: socket.socket, pid: int) -> str:
    """What makes it another socket than one end of a pair that the process made itself."""
    if end.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN) != socket.AF_UNIX:
        return "no unix socket"
    if end.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) != socket.SOCK_SEQPACKET:
        return "no seqpacket socket"
    if end.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        return "a listening socket"
    credentials = end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    peer: int = struct.unpack("iII", credentials)[0]
    return "" if peer == pid else f"connected to process {peer}"


def _impostor(pid: int, why: str) -> errors.Internal:
    return errors.Internal("control-impostor", f"connect to process {pid}", why)
