"""What an operation notices while it works: signals, and the death of whoever asked for it."""

from __future__ import annotations

from diapause.runtime.errors import Internal
from diapause.runtime.linux import signals
from diapause.runtime.linux.events import Events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from diapause.runtime.linux.deadline import Deadline

ENDING = (signals.SIGTERM, signals.SIGINT, signals.SIGHUP)


class Watch(Events):
    """The poll set of one operation. A cancellation is acted upon at the next `check` or `wait`."""

    def __init__(self, what: str, parent: int | None = None, sigmask: Collection[int] | None = None) -> None:
        """`what` names the operation in errors; `parent` is a pipe that hangs up when the caller dies.

        `sigmask` is what programs start with, when the mask was changed before.
        """
        super().__init__(ENDING)
        self.what = what
        self.sigmask: Collection[int] = self.inherited_mask if sigmask is None else sigmask
        self.oom_score_adj = ""  # what runc has to get back, "" if this process has the same
        self.cancelled = ""  # why, once it is
        self.shielded = False  # while something is undone or past the point of no return
        for number in ENDING:
            self.on_signal(number, self._signalled)
        if parent is not None:
            self.watch(parent, lambda: self._orphaned(parent))

    def _signalled(self, number: int) -> None:
        from signal import Signals

        self.cancelled = self.cancelled or f"interrupted by {Signals(number).name}"

    def _orphaned(self, parent: int) -> None:
        self.cancelled = self.cancelled or "the process that asked for it died"
        self.forget(parent)

    def check(self) -> None:
        """Raises Internal (code interrupted) if the operation was cancelled."""
        self.serve()
        if self.cancelled and not self.shielded:
            raise Internal("interrupted", self.what, self.cancelled, "repeat it")

    def wait(self, done: Callable[[], bool], deadline: Deadline, *, tick: float = 0) -> bool:
        """As until(), but raises as check() does when the operation is cancelled meanwhile."""
        self.until(lambda: done() or bool(self.cancelled and not self.shielded), deadline, tick=tick)
        if done():
            return True
        self.check()
        return False
