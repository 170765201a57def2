"""The keeper's loop: start the child that does the work, keep what it holds, start another when it dies."""

from __future__ import annotations

import os
import select
import signal
import socket
import time

from diapause.runtime.gpud import log
from diapause.runtime.gpud.keeper import Kept, drain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_TRIES = 3  # children that may die within _SOON of their start, one after the other
_SOON = 10.0  # seconds


def run(serve: Callable[[socket.socket, Kept], None]) -> int:
    """Have a child `serve`, with its end of a socket pair and what is kept; returns the exit status.

    Single-threaded: it forks.
    """
    kept = Kept()
    failed = 0
    while True:
        started = time.monotonic()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = os.fork()
        if pid == 0:
            ours.close()
            _child(serve, theirs, kept)
        theirs.close()
        status = _attend(pid, ours, kept)
        if status == 0:
            return 0
        failed = failed + 1 if time.monotonic() - started < _SOON else 1
        log.write("error", "the controller's process died", status=status, holding=bool(kept))
        if failed >= _TRIES:
            return 1


def _attend(pid: int, ours: socket.socket, kept: Kept) -> int:
    """Follow a child until it is gone; its exit status, negative for a signal."""
    stop_read, stop_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.signal(signal.SIGTERM, lambda *_: os.write(stop_write, b"x"))
    poll = select.poll()
    poll.register(ours, select.POLLIN)
    poll.register(stop_read, select.POLLIN)
    try:
        with ours:
            while True:
                for fd, _ in poll.poll():
                    if fd == stop_read:
                        os.read(stop_read, 16)
                        os.kill(pid, signal.SIGTERM)
                    elif not drain(ours, kept):
                        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    finally:
        os.close(stop_read)
        os.close(stop_write)


def _child(serve: Callable[[socket.socket, Kept], None], end: socket.socket, kept: Kept) -> None:
    """Never returns."""
    status = 1
    try:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
        serve(end, kept)
        status = 0
    except BaseException as e:
        log.write("error", f"{type(e).__name__}: {e}")
    finally:
        os._exit(status)
