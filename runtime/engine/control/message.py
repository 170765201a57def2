"""One frame and its file descriptors through the socket, without waiting."""

import array
import os
import socket
from collections.abc import Sequence

from diapause.runtime.engine.control.frame import FDS, LIMIT, Frame, FrameError

_NOWAIT = socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL  # not O_NONBLOCK: the process shares that flag


def send(end: socket.socket, frame: Frame, fds: Sequence[int]) -> None:
    """Raises BlockingIOError when there is no room; the fds stay the caller's."""
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    end.sendmsg([frame.encode()], ancillary, _NOWAIT)


def receive(end: socket.socket) -> tuple[Frame, list[int]]:
    """The next frame and its fds, close-on-exec, which the caller owns.

    Raises BlockingIOError when there is none, FrameError for what is none, without an fd left open.
    """
    message, ancillary, flags, _ = end.recvmsg(
        LIMIT, socket.CMSG_SPACE(FDS * 4), _NOWAIT | socket.MSG_CMSG_CLOEXEC
    )
    fds = _fds(ancillary)
    try:
        if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
            raise FrameError("a message longer than a frame may be")
        return Frame.decode(message, fds=len(fds)), fds
    except FrameError:
        close_fds(fds)
        raise


def close_fds(fds: Sequence[int]) -> None:
    for fd in fds:
        os.close(fd)


def _fds(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    fds = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(data[: len(data) // fds.itemsize * fds.itemsize])
    return list(fds)
