"""Thaw a frozen container: a frozen process can answer nobody, not even the driver."""

from __future__ import annotations

from diapause.runtime.engine import held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.engine.subject import Subject


class Thaw:
    """undo: threads that are held go on, or into the freezer if the container was found in it."""

    name = "thaw"

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    def describe(self) -> str:
        return "thaw the container if a client froze it, its programs held still"

    def execute(self) -> None:
        if self._subject.found_frozen:
            held.thaw_still(self._subject)

    def undo(self) -> None:
        held.let_go(self._subject, frozen=self._subject.found_frozen)
