"""Device memory changes hands: the controllers hold it, and the processes let go of it."""

from __future__ import annotations

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
        deadline = Deadline.after(self._subject.settings.checkpoint_timeout)
        self._exchange.hand_over(deadline)
        self._subject.watch.check()
        self._exchange.drop(deadline)
        self.bytes = self._exchange.bytes

    def undo(self) -> None:
        self._exchange.take_back(Deadline.after(self._subject.settings.restore_timeout))
