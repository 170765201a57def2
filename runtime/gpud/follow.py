"""Letting go of memory that a process has freed.

Memory that was handed over is held by us too, so that freeing it in the process frees nothing. The library
counts what it lets go of in its control page, and wakes whoever waits there: we ask which allocations are
left, and close the others. A program that frees and allocates again finds its memory: the library tries
again for a second when the driver has none.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
import time

from diapause.runtime.container import run_dir
from diapause.runtime.engine.control import connect, search
from diapause.runtime.engine.control.page import SIZE, Counter, place
from diapause.runtime.errors import DiapauseError
from diapause.runtime.gpud import log
from diapause.runtime.linux import libc
from diapause.runtime.linux.deadline import Deadline
from diapause.runtime.linux.locks import Lock
from diapause.runtime.linux.pidfd import exited

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.gpud.holdings import Container

OPERATION = "release"  # what the container's lock says while we ask; an operation waits for that

_PATIENCE = 0.25  # seconds for the library to answer: a paused one does not, and a checkpoint may wait for us
_LOOK = 5.0  # seconds between two looks whether the process is still there
_GATHER = 0.01  # seconds in which a program frees more
_AGAIN = 0.1  # seconds to the next try while an operation has the container
_FIRST, _LAST = 0.25, 2.0  # seconds to the next try when it did not answer


class Follower:
    """A thread for one process of a container, until that ends or nothing is held of it any more."""

    def __init__(self, container: Container, process: int, pidfd: int) -> None:
        """`pidfd` stays the caller's."""
        self._container = container
        self._process = process
        self._pidfd = os.dup(pidfd)
        container.followed[process] = self
        threading.Thread(target=self._run, name="follow", daemon=True).start()

    def _run(self) -> None:
        try:
            self._follow()
        except (DiapauseError, OSError, ValueError) as e:
            # What was freed comes back when the process ends.
            log.write(
                "warning", f"process is not followed: {e}", container=self._container.name,
                process=self._process,
            )  # fmt: skip
        finally:
            os.close(self._pidfd)

    def _follow(self) -> None:
        pid = _pid(self._pidfd)
        with search.opened(pid, self._pidfd) as found:
            if found is None:
                raise ValueError("it has no control page")
            page = mmap.mmap(found[0], SIZE, mmap.MAP_SHARED)  # sealed: it cannot shrink under us
        word = ctypes.c_uint32.from_buffer(page, place(Counter.RELEASED))  # its low half
        seen = -1  # something may have been freed before we came
        pause = _FIRST
        while self._wanted():
            value = word.value
            if value == seen:
                libc.futex_wait(word, value, _LOOK)
                continue
            time.sleep(_GATHER)
            lock = self._lock()
            if lock is None:
                time.sleep(_AGAIN)
            elif self._settle(pid, lock):
                seen, pause = value, _FIRST
            else:
                time.sleep(pause)
                pause = min(2 * pause, _LAST)

    def _wanted(self) -> bool:
        return self._container.followed.get(self._process) is self and not exited(self._pidfd)

    def _lock(self) -> Lock | None:
        """The container's lock: an operation that has it uses the channel, and knows what it does."""
        try:
            return Lock.try_take(f"{run_dir()}/c/{self._container.name}/lock")
        except OSError:
            return None  # it is being deleted

    def _settle(self, pid: int, lock: Lock) -> bool:
        """Ask what is left and let go of the rest; False when there was no answer. Closes the lock."""
        with lock:
            lock.write(f"{OPERATION} {os.getpid()}\n")
            try:
                deadline = Deadline.after(_PATIENCE)
                with connect(pid, self._pidfd, deadline) as channel:
                    left = {memory.id for memory in channel.memory(deadline)}
            except (DiapauseError, OSError):
                return False
            return self._let_go(left)

    def _let_go(self, left: set[int]) -> bool:
        container = self._container
        with container.lock:
            if container.busy:
                return False
            before = len(container.held)
            container.drop(lambda held: held.process == self._process and held.id not in left)
            gone = before - len(container.held)
        if gone:
            log.write("info", "freed", container=container.name, process=self._process, allocations=gone)
        return True


def _pid(pidfd: int) -> int:
    """The number of a process that is held. Raises ValueError when it has ended."""
    with open(f"/proc/self/fdinfo/{pidfd}", encoding="ascii") as file:
        for line in file:
            name, _, value = line.partition(":")
            if name == "Pid" and int(value) > 0:
                return int(value)
    raise ValueError("it has ended")
