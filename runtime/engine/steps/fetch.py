"""The controllers bring the saved device memory back to the GPU, while CRIU restores the processes."""

from __future__ import annotations

from diapause.runtime.gpud import names
from diapause.runtime.linux.deadline import Deadline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.engine.exchange import Exchange
    from diapause.runtime.engine.subject import Subject
    from diapause.runtime.store.gpu_data import GpuData

_STARTS = 60.0  # seconds for a controller to start


class Fetch:
    """Returns when the GPU has room for it; Attach waits for the rest. undo: the memory is freed."""

    name = "fetch"

    def __init__(self, subject: Subject, exchange: Exchange, data: GpuData | None, digest: str) -> None:
        """`digest` is that of the index of `data`."""
        self._subject = subject
        self._exchange = exchange
        self._data = data
        self._digest = digest
        self.bytes = 0

    def describe(self) -> str:
        return f"start to bring {self.bytes} bytes of GPU memory back"

    def execute(self) -> None:
        if self._data is None:
            return
        controllers = self._exchange.controllers
        deadline = Deadline.after(self._subject.settings.restore_timeout)
        gpus = [names.uuid_text(uuid) for uuid in self._data.index.devices]
        self._subject.journal.note(gpus=gpus)
        for gpu in gpus:
            controller = controllers.get(gpu, Deadline.after(_STARTS))
            controller.forget(controllers.container, deadline)  # of an earlier container of this name
            found = controller.load(controllers.container, self._data.fd, deadline, digest=self._digest)
            self.bytes += sum(allocation.size for allocation in found)
        self._data.touch()

    def undo(self) -> None:
        self._exchange.forget()
