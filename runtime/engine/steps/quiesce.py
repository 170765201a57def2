"""Close the gates of every process: no call is inside the driver, and the GPU has nothing left to do."""

from __future__ import annotations

from diapause.runtime.engine import failures, libraries, processes
from diapause.runtime.engine import subject as limits
from diapause.runtime.engine.exchange import Unsuited
from diapause.runtime.engine.failures import label
from diapause.runtime.engine.libraries import each
from diapause.runtime.engine.steps import gate, lock
from diapause.runtime.errors import FailedPrecondition, Unavailable
from diapause.runtime.linux.deadline import Deadline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from diapause.runtime.engine.exchange import Exchange
    from diapause.runtime.engine.libraries import Library
    from diapause.runtime.engine.processes import GpuProcess
    from diapause.runtime.engine.subject import Subject

_ALONE = 0.2  # seconds that the libraries may take with their own threads before all others run again
_ROUNDS = 10  # until no new GPU process appeared since the last search
_NOT_YET = ("control-busy", "control-no-answer")


class Quiesce:
    """All processes at once: the work of one may wait for the work of another.

    undo: the gates are opened.
    """

    name = "quiesce"

    def __init__(self, subject: Subject, exchange: Exchange) -> None:
        self._subject = subject
        self._exchange = exchange

    def describe(self) -> str:
        return f"close the gates of {len(self._exchange.processes)} processes"

    def execute(self) -> None:
        subject = self._subject
        if subject.found_frozen:  # nobody could answer before
            patiently(subject, self._exchange, self._exchange.look, libraries.ALONE)
        lock.check(subject, list(subject.gpu))
        for _ in range(_ROUNDS):
            self._quiesce(self._exchange.libraries())
            subject.forget_dead()
            if not (fresh := self._fresh()):
                return
            self._join(fresh)
        raise failures.keep_appearing(subject.what)

    def _fresh(self) -> list[GpuProcess]:
        """Processes that use a GPU, or may from now on; not children that only have not let go yet."""
        subject = self._subject
        known = [*subject.pids, *(process.pid for process in self._exchange.processes)]
        fresh = []
        for process in processes.gpu_processes(subject.freezer.path, subject.devices, known):
            if process.holds_device or libraries.has_own(process):
                fresh.append(process)
            else:
                process.close()
        subject.add(fresh)
        return fresh

    def _join(self, fresh: Sequence[GpuProcess]) -> None:
        """New ones may have what cannot change hands, or no library. A child is waited for until its exec."""
        subject = self._subject
        suited = [process for process in fresh if is_suited(process)]
        others = [process for process in fresh if process not in suited]
        lock.check(subject, list(others))
        for process in others:
            if process in subject.gpu:
                why = f"{label(process.pid)} has begun to use the GPU without a library that can move memory"
                todo = "repeat it when the container has settled, or use the engine driver"
                raise Unsuited(FailedPrecondition("gpu-process-joined", subject.what, why, todo))
        self._exchange.add(suited)
        self._exchange.look()
        lock.check(subject, suited)

    def _quiesce(self, found: Sequence[Library]) -> None:
        subject = self._subject
        timeout = subject.settings.lock_timeout

        def ask(deadline: Deadline) -> None:
            seconds = deadline.remaining
            grace = Deadline.after(seconds + limits.GRACE)
            self._exchange.attend(lambda: _quiesce(found, grace, seconds))

        patiently(subject, self._exchange, ask, _ALONE, timeout)

    def undo(self) -> None:
        self._subject.hold.release_still()  # behind the gates
        self._exchange.open(Deadline.after(limits.QUERY))


def _quiesce(found: Sequence[Library], deadline: Deadline, seconds: float) -> None:
    each(found, lambda library: library.channel.quiesce(deadline, timeout=seconds))


def patiently(
    subject: Subject,
    exchange: Exchange,
    call: Callable[[Deadline], None],
    alone: float,
    seconds: float = limits.QUERY,
) -> None:
    """Make a call that may be repeated; if held threads are in its way they are let go behind the gates.

    They get `alone` seconds at most: one may be inside a call, or hold a lock that the library needs.
    """
    if subject.hold.tids:
        try:
            call(Deadline.after(alone))
            return
        except Unavailable as error:
            if error.code not in _NOT_YET:
                raise
        gate.shut(exchange.processes)  # those that said that they are not quiet have opened it
        subject.hold.release_still()
    call(Deadline.after(seconds))


def is_suited(process: GpuProcess) -> bool:
    """Whether a process, which may be frozen, can give its memory away."""
    from diapause.runtime.linux import proc

    return process.library and not libraries.is_old(process) and not proc.group_stopped(process.pid)
