"""The controllers bring the saved device memory back to the GPU, while CRIU restores the processes."""

from __future__ import annotations

from diapause.runtime.linux.deadline import Deadline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.engine.exchange import Exchange
    from diapause.runtime.engine.place import Source
    from diapause.runtime.engine.subject import Subject

_STARTS = 60.0  # seconds for a controller to start


class Fetch:
    """Returns when the GPU has room for it; Attach waits for the rest. undo: the memory is freed."""

    name = "fetch"

    def __init__(self, subject: Subject, exchange: Exchange, source: Source) -> None:
        self._subject = subject
        self._exchange = exchange
        self._source = source
        self.bytes = 0

    def describe(self) -> str:
        return f"start to bring {self.bytes} bytes of GPU memory back from {self._source.path}"

    def execute(self) -> None:
        controllers = self._exchange.controllers
        deadline = Deadline.after(self._subject.settings.restore_timeout)
        self._subject.journal.note(gpus=self._source.gpus)
        for gpu in self._source.gpus:
            controller = controllers.get(gpu, Deadline.after(_STARTS))
            controller.forget(controllers.container, deadline)  # of an earlier container of this name
            source = self._source
            found = controller.load(controllers.container, source.directory, deadline, digest=source.digest)
            self.bytes += sum(allocation.size for allocation in found)

    def undo(self) -> None:
        self._exchange.forget()
