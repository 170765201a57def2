"""Device memory changes hands: the controllers hold it, and the processes let go of it."""

from __future__ import annotations

from diapause.runtime.engine import libraries
from diapause.runtime.engine.steps.quiesce import patiently
from diapause.runtime.linux.deadline import Deadline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.engine.exchange import Exchange
    from diapause.runtime.engine.subject import Subject


class HandOver:
    """undo: the processes take it back, from the fds that this process keeps, else from the controllers."""

    name = "hand-over"

    def __init__(self, subject: Subject, exchange: Exchange) -> None:
        self._subject = subject
        self._exchange = exchange
        self.bytes = 0

    def describe(self) -> str:
        return f"hand over {self._exchange.count} allocations of GPU memory"

    def execute(self) -> None:
        subject, exchange = self._subject, self._exchange
        seconds = subject.settings.checkpoint_timeout
        patiently(subject, exchange, exchange.hand_over, libraries.ALONE, seconds)
        subject.watch.check()
        patiently(subject, exchange, exchange.drop, libraries.ALONE, seconds)
        self.bytes = self._exchange.bytes

    def undo(self) -> None:
        self._subject.hold.release_still()  # behind the gates
        self._exchange.take_back(Deadline.after(self._subject.settings.restore_timeout))
