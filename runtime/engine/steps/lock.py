"""The driver's lock: no new work reaches the GPU, and what was submitted has ended."""

from __future__ import annotations

from diapause.runtime.engine import failures, held
from diapause.runtime.engine import subject as limits
from diapause.runtime.engine.driver import results
from diapause.runtime.engine.processes import holds_device
from diapause.runtime.linux.deadline import Deadline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.engine.processes import GpuProcess
    from diapause.runtime.engine.subject import Subject


_ALONE = 0.2  # seconds that the driver may take with its own threads before all others run again
_EXEC = 0.5  # seconds that a child of a GPU process may take from its fork to its exec


class Lock:
    """All processes in parallel: one after the other could wait for ever, when a kernel waits for another's.

    Threads that Thaw holds run again if the driver does not come to an end without them.
    """

    name = "lock"

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    def describe(self) -> str:
        return f"lock {len(self._subject.gpu)} processes at the driver"

    def execute(self) -> None:
        subject = self._subject
        lock(subject, subject.gpu)

    def undo(self) -> None:
        subject = self._subject
        held.wake_stopped(subject)
        subject.hold.let_run(process.tid for process in subject.gpu)  # a hold that broke off holds them too
        if not (locked := subject.in_state(results.LOCKED)):
            return
        answers = subject.ask("unlock", locked)
        subject.forget_dead()
        for pid, answer in failures.failing(answers, subject.pids):
            raise failures.unlock(subject.what, pid, answer)


def lock(subject: Subject, processes: list[GpuProcess]) -> None:
    """Lock some processes, after a look whether the driver can save them at all."""
    held.wake_stopped(subject)
    check(subject, processes)
    milliseconds = int(subject.settings.lock_timeout * 1000)
    pids = [process.pid for process in processes if process in subject.gpu]
    seconds = subject.settings.lock_timeout + limits.GRACE
    # The driver may wait for a host callback, or for a thread that was caught inside it.
    release = subject.hold.release_still if subject.hold.tids and not subject.locked else None
    answers = subject.call("lock", pids, seconds, argument=milliseconds, after=(_ALONE, release))
    subject.locked = True
    subject.forget_dead()
    for pid, answer in failures.failing(answers, subject.pids):
        raise failures.lock(subject.what, pid, answer, subject.settings.lock_timeout)
    held.find_driver_threads(subject)


def _lets_go(subject: Subject, process: GpuProcess) -> bool:
    """Whether it closes the device right away, as a child does between its fork and its exec."""

    def gone() -> bool:
        return not process.alive or not holds_device(process.pid, subject.devices)

    if not subject.locked:
        subject.hold.release_still()  # held still, as it was thawed, it never would
    return subject.watch.wait(gone, Deadline.after(_EXEC), tick=0.002)


def check(subject: Subject, processes: list[GpuProcess]) -> None:
    """Refuse what cannot be saved; forget processes that only have our library loaded."""
    answers = subject.ask("state", [process.pid for process in processes])
    subject.forget_dead()
    for process in list(processes):
        answer = answers[process.pid]
        if process not in subject.gpu:
            continue
        if answer.result != results.SUCCESS:
            if process.holds_device and not _lets_go(subject, process):
                raise failures.cannot_be_saved(subject.what, process.pid, answer)
            subject.gpu.remove(process)
        elif answer.value != results.RUNNING:
            raise failures.wrong_state(subject.what, process.pid, answer.value)
