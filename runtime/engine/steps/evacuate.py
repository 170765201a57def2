"""The driver's checkpoint: device memory moves into the processes, and the GPU is free."""

from __future__ import annotations

from diapause.runtime.engine import failures, held, processes
from diapause.runtime.engine.driver import results

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.engine.subject import Subject


class Evacuate:
    """All processes in parallel, only the driver's threads running.

    undo: the driver's restore. If that fails the process is lost, which nothing can mend.
    """

    name = "evacuate"

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self.bytes = 0  # that appeared in the processes

    def describe(self) -> str:
        return f"let the driver checkpoint {len(self._subject.gpu)} processes"

    def execute(self) -> None:
        subject = self._subject
        before = processes.memory(subject.pids)
        answers = subject.call("checkpoint", subject.pids, subject.settings.checkpoint_timeout)
        subject.forget_dead()
        for pid, answer in failures.failing(answers, subject.pids):
            raise failures.checkpoint(subject.what, pid, answer)
        self.bytes = max(0, processes.memory(subject.pids) - before)

    def undo(self) -> None:
        subject = self._subject
        held.retake(subject)
        reload(subject)


def reload(subject: Subject) -> None:
    """Restore at the driver whatever it has checkpointed. Raises for processes that are lost."""
    checkpointed = subject.in_state(results.CHECKPOINTED)
    answers = subject.call("restore", checkpointed, subject.settings.restore_timeout)
    subject.forget_dead()
    for pid, answer in failures.failing(answers, subject.pids):
        raise failures.restore(subject.what, pid, answer)
