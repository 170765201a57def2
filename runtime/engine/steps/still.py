"""Freeze the container, with the libraries left alone, so that CRIU can take hold of it."""

from __future__ import annotations

from diapause.runtime.engine import held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.engine.exchange import Exchange
    from diapause.runtime.engine.subject import Subject


class Still:
    """undo: thaw; whoever was held goes on to the closed gates."""

    name = "still"

    def __init__(self, subject: Subject, exchange: Exchange) -> None:
        self._subject = subject
        self._exchange = exchange

    def describe(self) -> str:
        return "freeze the container"

    def execute(self) -> None:
        self._exchange.disconnect()
        held.let_go(self._subject, frozen=True)

    def undo(self) -> None:
        self._subject.thaw()
