"""Freeze the evacuated processes and let go of their threads, so that CRIU can take hold of them."""

from __future__ import annotations

from diapause.runtime.engine import held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.engine.subject import Subject


class Seal:
    """undo: the threads are held again, only the driver's run."""

    name = "seal"

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    def describe(self) -> str:
        return "freeze the container and let go of its threads"

    def execute(self) -> None:
        held.let_go(self._subject, frozen=True)

    def undo(self) -> None:
        held.retake(self._subject)
