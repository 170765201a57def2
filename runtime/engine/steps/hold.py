"""Hold every thread of the GPU processes: one that polls during the driver's checkpoint dies."""

from __future__ import annotations

from diapause.runtime.engine import failures, held, processes
from diapause.runtime.engine import subject as limits
from diapause.runtime.engine.steps import lock
from diapause.runtime.linux.deadline import Deadline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.engine.subject import Subject

_ROUNDS = 10  # until no new GPU process appeared since the last search


class Hold:
    """undo: nothing; the threads stay held until Thaw is undone, after the driver's calls."""

    name = "hold"

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    def describe(self) -> str:
        return "hold all threads of the GPU processes"

    def execute(self) -> None:
        subject = self._subject
        subject.hold.halt(Deadline.after(limits.FREEZE))
        for _ in range(_ROUNDS):
            held.take(subject)
            subject.forget_dead()
            fresh = processes.gpu_processes(subject.freezer.path, subject.devices, subject.pids)
            if not fresh:
                held.leave_driver(subject)
                held.drive(subject)
                return
            subject.add(fresh)
            lock.lock(subject, fresh)
        raise failures.keep_appearing(subject.what)

    def undo(self) -> None:
        pass
