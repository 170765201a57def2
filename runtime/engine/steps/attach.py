"""The processes that CRIU brought back take their device memory, and their gates open."""

from __future__ import annotations

import os

from diapause.runtime.engine import held, libraries, processes
from diapause.runtime.engine import subject as limits
from diapause.runtime.errors import Unavailable
from diapause.runtime.linux import signals
from diapause.runtime.linux.deadline import Deadline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.engine.exchange import Exchange
    from diapause.runtime.engine.subject import Subject


class Attach:
    """Of the stopped threads only the libraries' and the driver's run. The gates are closed as they were
    dumped, so the others of these processes may run as well, if one holds a lock that is needed.

    Cannot be undone by itself: the container is ended.
    """

    name = "attach"

    def __init__(self, subject: Subject, exchange: Exchange) -> None:
        self._subject = subject
        self._exchange = exchange
        self.bytes = 0

    def describe(self) -> str:
        return f"give {len(self._exchange.processes)} processes their GPU memory"

    def execute(self) -> None:
        subject, exchange = self._subject, self._exchange
        self._find()
        for controller in exchange.controllers:
            deadline = Deadline.after(subject.settings.restore_timeout)
            outcome = controller.wait(
                exchange.controllers.container, deadline, lambda *_: subject.watch.check()
            )
            self.bytes += outcome.bytes
        self._hold()
        try:
            self._take(libraries.ALONE)
        except Unavailable as error:
            if error.code != "control-no-answer":
                raise
            self._release()
            self._take(subject.settings.restore_timeout)
        exchange.disconnect()
        held.quiet(subject)

    def _find(self) -> None:
        """All with a library: those that the driver had nothing of have closed gates too."""
        subject = self._subject
        found = processes.gpu_processes(subject.freezer.path, subject.devices, subject.pids)
        for process in found:
            subject.stack.callback(process.close)
        self._exchange.add([*subject.gpu, *filter(libraries.has_own, found)])

    def _hold(self) -> None:
        hold, pids = self._subject.hold, [process.pid for process in self._exchange.processes]
        hold.seize(pids, Deadline.after(limits.FREEZE))
        hold.settle(Deadline.after(limits.FREEZE))
        drivers = [process.tid for process in self._subject.gpu]
        hold.let_run([*drivers, *libraries.threads(pids)])

    def _release(self) -> None:
        """Let all threads of these processes run, behind the closed gates."""
        self._exchange.disconnect()
        held.quiet(self._subject)
        self._subject.hold.release()
        for process in self._exchange.processes:
            try:
                os.kill(process.pid, signals.SIGCONT)
            except ProcessLookupError:
                continue

    def _take(self, seconds: float) -> None:
        deadline = Deadline.after(seconds)
        self._exchange.attach(deadline)
        self._exchange.watch(deadline)
        self._exchange.open(deadline)

    def undo(self) -> None:
        pass
