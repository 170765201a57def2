"""Threads that were caught inside the driver, and how they get out of it before it saves anything.

The driver's lock lets calls through that only poll (cuEventQuery, cuStreamQuery). A thread that is held in
one may hold a mutex of the driver, also in the snapshot: the driver's restore then waits for it for ever.
"""

from __future__ import annotations

import os
import time

from diapause.runtime.linux import proc
from diapause.runtime.linux.deadline import Deadline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from diapause.runtime.engine.hold import Hold

PATIENCE = 5.0  # seconds for all threads together; 64 that do nothing but poll take tenths of one
_LIBRARIES = ("libcuda.so", "libnvidia-")  # how the files of the driver are called
_STACK = 8192  # bytes above the stack pointer that are searched for return addresses
_SLICE = 50e-6  # seconds that a thread runs before the next look
_LOOKS = 4  # in one slice of time: a thread may first have to get a processor
_SLICES = 64  # of one thread before the next one gets its turn
_WORD = 8  # bytes of an address


class Inside:
    """The held threads of some processes whose stack leads through the driver.

    `threads` are (pid, tid) of threads that stand still.
    """

    def __init__(self, hold: Hold, threads: Iterable[tuple[int, int]]) -> None:
        self._hold = hold
        self._code: dict[int, list[tuple[int, int]]] = {}
        self._threads = [thread for thread in threads if self._is_inside(*thread)]

    @property
    def threads(self) -> list[tuple[int, int]]:
        return list(self._threads)

    def leave(self, deadline: Deadline) -> list[tuple[int, int]]:
        """Let them run until each is outside; returns those that still move inside at the deadline.

        What sleeps inside when nobody moves any more waits at the driver's lock, and may stay there.
        """
        while self._threads:
            asleep = self._slice(self._threads, deadline)
            moving = [thread for thread in self._threads if thread not in asleep]
            for thread in moving:
                self._finish(thread, deadline)
            self._threads = [thread for thread in self._threads if self._is_inside(*thread)]
            if deadline.expired:
                return [thread for thread in moving if thread in self._threads]
            if not moving:
                break
        return []

    def _finish(self, thread: tuple[int, int], deadline: Deadline) -> None:
        """Slices for one thread alone: while others poll too, it would mostly wait for them."""
        for _ in range(_SLICES):
            if not self._is_inside(*thread) or self._slice([thread], deadline) or deadline.expired:
                break

    def _slice(self, threads: list[tuple[int, int]], deadline: Deadline) -> set[tuple[int, int]]:
        """Let some threads run for a moment; returns those that slept in the kernel at its end."""
        self._hold.let_run(tid for _, tid in threads)
        asleep: set[tuple[int, int]] = set()
        for _ in range(_LOOKS):
            time.sleep(_SLICE)
            asleep = {thread for thread in threads if _is_asleep(*thread)}
            if len(asleep) == len(threads):
                break
        self._hold.halt(deadline)
        return asleep

    def _is_inside(self, pid: int, tid: int) -> bool:
        try:
            with open(f"/proc/{pid}/task/{tid}/syscall", encoding="ascii") as file:
                words = file.read().split()
            if len(words) < 3:
                return False
            stack, at = int(words[-2], 16), int(words[-1], 16)
            code = self._driver_code(pid)
            if _lies_in(at, code):
                return True
            return any(_lies_in(word, code) for word in _candidates(_stack(pid, stack), code))
        except OSError:
            return False  # it has ended

    def _driver_code(self, pid: int) -> list[tuple[int, int]]:
        """Where the driver's machine code lies in the process."""
        if pid not in self._code:
            self._code[pid] = proc.executable_mappings(pid, _LIBRARIES)
        return self._code[pid]


def _lies_in(address: int, ranges: list[tuple[int, int]]) -> bool:
    return any(low <= address < high for low, high in ranges)


def _stack(pid: int, at: int) -> bytes:
    """What lies on a stack, word by word, as far as it reaches."""
    fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(fd, _STACK, at & -_WORD)
    finally:
        os.close(fd)


def _candidates(data: bytes, ranges: list[tuple[int, int]]) -> Iterator[int]:
    """The words whose upper half is that of an address in `ranges`; a search, as a loop takes too long."""
    for upper in {address >> 32 for low, high in ranges for address in (low, high - 1)}:
        pattern = upper.to_bytes(4, "little")
        at = data.find(pattern)
        while at >= 0:
            if at % _WORD == 4:
                yield int.from_bytes(data[at - 4 : at + 4], "little")
            at = data.find(pattern, at + 1)


def _is_asleep(pid: int, tid: int) -> bool:
    """Whether the thread waits in a system call; one that runs tells nothing but that."""
    try:
        with open(f"/proc/{pid}/task/{tid}/syscall", encoding="ascii") as file:
            return not file.read().startswith(("running", "-1"))
    except OSError:
        return True
