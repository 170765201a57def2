"""The container that an operation works on, and what the operation knows and owns of it."""

from __future__ import annotations

from diapause.runtime.engine import failures
from diapause.runtime.engine.driver import results
from diapause.runtime.engine.driver.calls import Hung
from diapause.runtime.engine.hold import Hold
from diapause.runtime.engine.phases import Phases
from diapause.runtime.engine.processes import Devices
from diapause.runtime.linux.deadline import Deadline
from diapause.runtime.linux.owned import Owned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from diapause.runtime.engine.driver.calls import Answer, Calls
    from diapause.runtime.engine.journal import Journal
    from diapause.runtime.engine.processes import GpuProcess
    from diapause.runtime.engine.request import Settings
    from diapause.runtime.engine.watch import Watch
    from diapause.runtime.linux.freezer import Freezer

FREEZE = 10.0  # seconds for a cgroup to freeze or thaw, for threads to stop
READY = 60.0  # seconds for the driver to initialise itself; 2.7 were seen with 8 GPUs
QUERY = 10.0  # seconds for the driver to answer a question
GRACE = 5.0  # seconds that a call may take longer than the driver was told
TRACERS = 60.0  # seconds for a CRIU that failed to let go of the threads


class Subject:
    """Owned things are entered into `stack`, which whoever made the subject closes."""

    def __init__(self, *, watch: Watch, settings: Settings, state: dict[str, Any], journal: Journal) -> None:
        self.watch = watch
        self.what = watch.what  # "checkpoint c1"
        self.settings = settings
        self.state = state
        self.journal = journal
        self.phases = Phases()
        self.stack = Owned()
        self.devices = Devices(state)
        self.hold = Hold(watch)
        self.stack.callback(self.hold.close)
        self.gpu: list[GpuProcess] = []
        self.init: GpuProcess | None = None  # the container's first process
        self.freezer: Freezer
        self.calls: Calls
        self.found_frozen = False
        self.locked = False  # the driver has locked the processes that were there at first
        self.stopped: set[int] = set()  # pids of GPU processes that a signal has stopped

    def add(self, processes: Iterable[GpuProcess]) -> None:
        """Take over some processes and journal them."""
        for process in processes:
            self.stack.callback(process.close)
            self.gpu.append(process)
        self.note_processes()

    def note_processes(self) -> None:
        self.journal.note(gpu=[[process.pid, process.start, process.tid] for process in self.gpu])

    def forget_dead(self) -> None:
        """A process that has ended needs nothing any more."""
        self.gpu = [process for process in self.gpu if process.alive]

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self.gpu]

    def ask(self, verb: str, pids: Iterable[int] | None = None) -> dict[int, Answer]:
        """A question to the driver about each GPU process, or about some."""
        return self.call(verb, self.pids if pids is None else pids, QUERY)

    def call(
        self,
        verb: str,
        pids: Iterable[int],
        seconds: float,
        *,
        argument: int = 0,
        after: tuple[float, Callable[[], None] | None] = (0, None),
    ) -> dict[int, Answer]:
        """A call on each process. Raises Internal (code driver-hung) when one is not answered in time.

        `after` is something to do when that many seconds have gone by without all answers.
        """
        try:
            return self.calls.call(verb, pids, Deadline.after(seconds), argument=argument, after=after)
        except Hung as error:
            raise failures.hung(self.what, error) from None

    def in_state(self, wanted: int) -> list[int]:
        """The living processes that the driver says are in that state."""
        self.forget_dead()
        answers = self.ask("state")
        return [
            pid
            for pid, answer in answers.items()
            if answer.result == results.SUCCESS and answer.value == wanted
        ]

    def freeze(self) -> None:
        self.freezer.freeze(Deadline.after(FREEZE))

    def thaw(self) -> None:
        self.freezer.thaw(Deadline.after(FREEZE))
