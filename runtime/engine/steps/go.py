"""Let the restored container run."""

from __future__ import annotations

import os

from diapause.runtime.engine import processes
from diapause.runtime.linux import signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from diapause.runtime.engine.subject import Subject


class Go:
    """The last step: everything that can fail comes before it, and it cannot be undone."""

    name = "go"

    def __init__(self, subject: Subject, stopped: Collection[int], verified: Callable[[], None]) -> None:
        """`stopped` are the (inner) pids that were stopped at the dump; `verified` waits and raises."""
        self._subject = subject
        self._stopped = stopped
        self._verified = verified

    def describe(self) -> str:
        return "continue all processes"

    def execute(self) -> None:
        self._verified()
        subject = self._subject
        subject.watch.check()
        subject.hold.release()
        if subject.init is not None:
            proceed(subject.freezer.path, subject.init.pid, self._stopped)

    def undo(self) -> None:
        pass


def proceed(cgroup: str, init: int, stopped: Collection[int]) -> None:
    """SIGCONT to every process that was not stopped at the dump."""
    for inner, pid in processes.by_inner_pid(cgroup, init).items():
        if inner not in stopped:
            try:
                os.kill(pid, signals.SIGCONT)
            except ProcessLookupError:
                continue
