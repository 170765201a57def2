"""runc and CRIU, up to the moment at which CRIU would take hold of the first process."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.engine.steps.dump import Dump


class Launch:
    """Comes first: the two need 45 ms to get there, while the driver empties the GPU.

    undo: CRIU is told to give up, before it has touched anything.
    """

    name = "launch"

    def __init__(self, dump: Dump) -> None:
        self._dump = dump

    def describe(self) -> str:
        return "start runc and criu"

    def execute(self) -> None:
        self._dump.launch()

    def undo(self) -> None:
        self._dump.call_off()
