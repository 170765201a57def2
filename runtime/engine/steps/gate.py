"""Thaw a frozen container behind closed gates: nothing of it gets to the GPU any more."""

from __future__ import annotations

from diapause.runtime.engine import held, libraries
from diapause.runtime.engine.control import gate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from diapause.runtime.engine.exchange import Exchange
    from diapause.runtime.engine.processes import GpuProcess
    from diapause.runtime.engine.subject import Subject


class Gate:
    """Programs are held still as long as the libraries can do without them, as Thaw does.

    undo: the gates that nobody closed for good are opened, and the container is put back into the freezer
    if it was found in it.
    """

    name = "gate"

    def __init__(self, subject: Subject, exchange: Exchange) -> None:
        self._subject = subject
        self._exchange = exchange

    def describe(self) -> str:
        return "thaw the container if a client froze it, its gates closed"

    def execute(self) -> None:
        subject = self._subject
        if not subject.found_frozen:
            return
        shut(self._exchange.processes)
        held.thaw_still(subject)
        subject.hold.let_run(libraries.threads(process.pid for process in self._exchange.processes))

    def undo(self) -> None:
        subject = self._subject
        held.quiet(subject)
        if subject.found_frozen:
            subject.freeze()
            unshut(self._exchange.processes)
        subject.hold.release()
        if not subject.found_frozen:
            subject.thaw()


def shut(processes: Iterable[GpuProcess]) -> None:
    """Let no call begin in the processes, which stand still."""
    for process in processes:
        if process.alive:
            gate.hold(process.pid, process.pidfd)


def unshut(processes: Iterable[GpuProcess]) -> None:
    """Take shut() back where nobody asked the process to be quiet since; they stand still."""
    for process in processes:
        if process.alive:
            gate.release(process.pid, process.pidfd)
