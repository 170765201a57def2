"""Threads that were caught inside the driver, and how they get out of it before it saves anything.

The driver's lock lets calls through that only poll (cuEventQuery, cuStreamQuery). A thread that is held in
one may hold a mutex of the driver, also in the snapshot: the driver's restore then waits for it for ever.
"""

from __future__ import annotations

import os
import time

from diapause.runtime.engine.subject import FREEZE
from diapause.runtime.linux import proc
from diapause.runtime.linux.deadline import Deadline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from diapause.runtime.engine.hold import Hold

PATIENCE = 10.0  # seconds for all threads together; 64 that do nothing but poll take one or two
_LIBRARIES = ("libcuda.so", "libnvidia-")  # how the files of the driver are called
_STACK = 8192  # bytes above the stack pointer that are searched for return addresses
_LOOK = 50e-6  # seconds between two looks whether a thread sleeps
_LOOKS = 4  # in one slice of time: a thread may first have to get a processor
_SLICES = 400  # of one thread, as short as they can be, before the next one gets its turn
_WORD = 8  # bytes of an address

# Where a thread stands: not in the driver, in its code, or in code that the driver has called.
_OUTSIDE, _IN_CODE, _BELOW = "outside", "in code", "below"


class Inside:
    """The held threads of some processes whose stack leads through the driver.

    `threads` are (pid, tid) of threads that stand still.
    """

    def __init__(self, hold: Hold, threads: Iterable[tuple[int, int]]) -> None:
        self._hold = hold
        self._code: dict[int, list[tuple[int, int]]] = {}
        self._calls: dict[tuple[int, int], bool] = {}
        self._threads = [thread for thread in threads if self._place(*thread) != _OUTSIDE]

    @property
    def threads(self) -> list[tuple[int, int]]:
        return list(self._threads)

    def leave(self, deadline: Deadline) -> list[tuple[int, int]]:
        """Let them run until each is outside; returns those that still move inside at the deadline.

        What sleeps inside when nobody moves any more waits at the driver's lock, and may stay there.
        """
        while self._threads:
            asleep = self._slice(self._threads, looks=_LOOKS)
            moving = [thread for thread in self._threads if thread not in asleep]
            for thread in moving:
                if self._drive_out(thread, deadline):
                    self._threads.remove(thread)
            if deadline.expired:
                return [thread for thread in moving if thread in self._threads]
            if not moving:
                break
        return []

    def _drive_out(self, thread: tuple[int, int], deadline: Deadline) -> bool:
        """Slices for one thread alone, as others that poll too would mostly make it wait; whether it is out.

        It is, too, if it never was in the driver's code itself: then something on its stack only looks like
        a return address.
        """
        seen = False
        for _ in range(_SLICES):
            place = self._place(*thread)
            if place == _OUTSIDE:
                return True
            seen |= place == _IN_CODE
            if deadline.expired or self._slice([thread], looks=1):
                return False
        return not seen

    def _slice(self, threads: list[tuple[int, int]], *, looks: int) -> set[tuple[int, int]]:
        """Let some threads run for a moment; returns those that slept in the kernel at its end."""
        self._hold.let_run(tid for _, tid in threads)
        asleep: set[tuple[int, int]] = set()
        for look in range(looks):
            if look:
                time.sleep(_LOOK)
            asleep = {thread for thread in threads if _is_asleep(*thread)}
            if len(asleep) == len(threads):
                break
        self._hold.halt(Deadline.after(FREEZE))
        return asleep

    def _place(self, pid: int, tid: int) -> str:
        try:
            with open(f"/proc/{pid}/task/{tid}/syscall", encoding="ascii") as file:
                words = file.read().split()
            if len(words) < 3:
                return _OUTSIDE
            stack, at = int(words[-2], 16), int(words[-1], 16)
            code = self._driver_code(pid)
            if _lies_in(at, code):
                return _IN_CODE
            for word in _candidates(_stack(pid, stack), code):
                if _lies_in(word, code) and self._returns(pid, word):
                    return _BELOW
            return _OUTSIDE
        except OSError:
            return _OUTSIDE  # it has ended

    def _returns(self, pid: int, address: int) -> bool:
        """Whether a call stands before the address; the address of a function may lie on a stack, too."""
        if (pid, address) not in self._calls:
            self._calls[pid, address] = _is_call(_read(pid, address - 7, 7))
        return self._calls[pid, address]

    def _driver_code(self, pid: int) -> list[tuple[int, int]]:
        """Where the driver's machine code lies in the process."""
        if pid not in self._code:
            self._code[pid] = proc.executable_mappings(pid, _LIBRARIES)
        return self._code[pid]


def _lies_in(address: int, ranges: list[tuple[int, int]]) -> bool:
    return any(low <= address < high for low, high in ranges)


def _is_call(before: bytes) -> bool:
    """Whether the machine code that ends here ends with a call."""
    if os.uname().machine == "aarch64":
        word = int.from_bytes(before[-4:], "little")
        return word & 0xFC000000 == 0x94000000 or word & 0xFFFFFC1F == 0xD63F0000  # bl, blr
    if before[-5:-4] == b"\xe8":
        return True
    # call r/m64 is ff /2, and two to seven bytes long
    return any(before[-n] == 0xFF and before[1 - n] >> 3 & 7 == 2 for n in (2, 3, 4, 6, 7))


def _stack(pid: int, at: int) -> bytes:
    """What lies on a stack, word by word, as far as it reaches."""
    return _read(pid, at & -_WORD, _STACK)


def _read(pid: int, at: int, size: int) -> bytes:
    fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(fd, size, at)
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
