"""The driver's restore and unlock of the processes that CRIU brought back."""

from __future__ import annotations

from diapause.runtime.engine import failures, held, processes
from diapause.runtime.engine import subject as limits
from diapause.runtime.engine.driver import results
from diapause.runtime.errors import Internal
from diapause.runtime.linux.deadline import Deadline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.engine.subject import Subject


class Reload:
    """All processes in parallel; of the stopped threads only the driver's run.

    Cannot be undone by itself: a failed driver restore is final, and the container is ended.
    """

    name = "reload"

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self.bytes = 0  # in the processes before, which hold the device memory

    def describe(self) -> str:
        return "let the driver restore and unlock the GPU processes"

    def execute(self) -> None:
        subject = self._subject
        subject.calls.ready(Deadline.after(limits.READY))
        self.bytes = processes.memory(subject.pids)
        held.find_driver_threads(subject)
        subject.hold.seize(subject.pids, Deadline.after(limits.FREEZE))
        subject.hold.settle(Deadline.after(limits.FREEZE))
        subject.hold.let_run(process.tid for process in subject.gpu)
        # Only now: the driver learns a process's state from that thread, and waits for ever without it.
        self._expect(results.CHECKPOINTED)
        self._each("restore")
        self._each("unlock")
        self._expect(results.RUNNING)
        held.quiet(subject)

    def _each(self, verb: str) -> None:
        subject = self._subject
        answers = subject.call(verb, subject.pids, subject.settings.restore_timeout)
        failure = failures.restore if verb == "restore" else failures.unlock
        for pid, answer in failures.failing(answers, answers):
            raise failure(subject.what, pid, answer)

    def _expect(self, state: int) -> None:
        subject = self._subject
        for pid, answer in subject.ask("state").items():
            if answer.result != results.SUCCESS or answer.value != state:
                found = results.name(answer.result) if answer.result else results.state(answer.value)
                why = f"{failures.label(pid)} should be {results.state(state)} for the driver, it is {found}"
                raise Internal("gpu-process-not-restored", subject.what, why, "take the snapshot anew")

    def undo(self) -> None:
        pass
