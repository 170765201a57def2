"""The end of a suspension: the memory lies in the store, and the GPU is free."""

from __future__ import annotations

from diapause.runtime.engine import suspended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from diapause.runtime.container import Container
    from diapause.runtime.engine.handover import Handover
    from diapause.runtime.engine.subject import Subject


class Park:
    """The record of the suspension is the point of no return: behind it nothing can fail.

    undo: there is nothing that has to be undone.
    """

    name = "park"

    def __init__(
        self, subject: Subject, handover: Handover, container: Container, facts: dict[str, Any]
    ) -> None:
        """`facts` is what whoever resumes has to know, as far as it is known by now."""
        self._subject = subject
        self._handover = handover
        self._container = container
        self._facts = facts
        self.bytes = 0

    def describe(self) -> str:
        return f"wait for the copy of {self.bytes} bytes, and free the GPU"

    def execute(self) -> None:
        subject, handover = self._subject, self._handover
        data = handover.finish()
        subject.watch.check()
        self.bytes = data["bytes"] if data else 0
        self._facts.update(
            gpu=[[process.pid, process.start, process.tid] for process in subject.gpu],
            gated=handover.gated,
            gpus=handover.gpus,
            stored=data["name"] if data else "",
            index=data["index"] if data else "",
            store_dir=subject.settings.store_dir,
            memory_dir=subject.settings.memory_dir,
        )
        suspended.write(self._container, self._facts)
        handover.forget()

    def undo(self) -> None:
        pass
