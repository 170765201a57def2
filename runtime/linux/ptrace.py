"""ptrace(2), the seizing kind: a thread is held without a signal that the program could see."""

import ctypes
import os

from diapause.runtime.linux import libc

_CONT = 7
_DETACH = 17
_SEIZE = 0x4206
_INTERRUPT = 0x4207
_GETSIGMASK = 0x420A
_SETSIGMASK = 0x420B

_WALL = 0x40000000
EVENT_STOP = 128
ALL_SIGNALS = (1 << 64) - 1


class Stop:
    """How a held thread stopped: `signal` is the one that is being delivered, `event` PTRACE_EVENT_*."""

    __slots__ = ("event", "signal")

    def __init__(self, status: int) -> None:
        self.signal = (status >> 8) & 0xFF
        self.event = status >> 16


def seize(tid: int) -> None:
    """Become the tracer; the thread goes on. Raises PermissionError while another one traces it."""
    libc.ptrace(_SEIZE, tid)


def interrupt(tid: int) -> None:
    """Make the thread trap before it runs another instruction of its program."""
    libc.ptrace(_INTERRUPT, tid)


def resume(tid: int, *, signal: int = 0) -> None:
    """Let a stopped thread run, with the signal it stopped for or without."""
    libc.ptrace(_CONT, tid, 0, signal)


def detach(tid: int, *, signal: int = 0) -> None:
    libc.ptrace(_DETACH, tid, 0, signal)


def signal_mask(tid: int) -> int:
    """The blocked signals of a stopped thread, bit n-1 for signal n."""
    mask = ctypes.c_uint64()
    libc.ptrace(_GETSIGMASK, tid, 8, ctypes.addressof(mask))
    return mask.value


def set_signal_mask(tid: int, mask: int) -> None:
    word = ctypes.c_uint64(mask)
    libc.ptrace(_SETSIGMASK, tid, 8, ctypes.addressof(word))


def stopped(tid: int) -> Stop | None:
    """The thread's stop if it has one to report, None if it runs.

    Raises ChildProcessError when it has ended (or was never ours). Never blocks.
    """
    while True:
        pid, status = os.waitpid(tid, os.WNOHANG | _WALL)
        if pid == 0:
            return None
        if status & 0xFF == 0x7F:
            return Stop(status)
        if status != 0xFFFF:  # ended: the report is consumed
            raise ChildProcessError(f"thread {tid} has ended")
