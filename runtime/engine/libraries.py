"""The libraries in the GPU processes of a container, asked all at once."""

from __future__ import annotations

from diapause.runtime.engine.control import connect
from diapause.runtime.engine.control.search import find
from diapause.runtime.linux import proc
from diapause.runtime.linux.thread import Thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    from diapause.runtime.engine.control import Channel
    from diapause.runtime.engine.processes import GpuProcess
    from diapause.runtime.linux.deadline import Deadline

    T = TypeVar("T")

THREADS = ("diapause-ctl", "diapause-drain")  # of the library: one answers, one waits for the GPU
ALONE = 5.0  # seconds that libraries may take with their own threads before all others run as well
MINOR = 1  # of the channel: the first that moves memory


class Library:
    """The library in one process; owns the channel."""

    __slots__ = ("channel", "inner", "process")

    def __init__(self, process: GpuProcess, inner: int, channel: Channel) -> None:
        self.process = process
        self.inner = inner  # pid as the container's first process sees it
        self.channel = channel

    @property
    def pid(self) -> int:
        return self.process.pid


class Libraries:
    """Owns the channels; they are closed while CRIU works, and connected anew when they are needed."""

    def __init__(self) -> None:
        self._open: dict[int, Library] = {}

    def connect(self, processes: Iterable[GpuProcess], init: int, deadline: Deadline) -> list[Library]:
        """One for each living process. Raises what control.connect() does."""
        level = len(proc.namespaced_pids(init)) - 1
        found = []
        for process in processes:
            if process.pid not in self._open and process.alive:
                channel = connect(process.pid, process.pidfd, deadline)
                self._open[process.pid] = Library(process, inner(process.pid, level), channel)
            if process.pid in self._open:
                found.append(self._open[process.pid])
        return found

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].channel.close()


def inner(pid: int, level: int) -> int:
    """The number of a process in the pid namespace of that level."""
    return proc.namespaced_pids(pid)[level]


def each(libraries: Iterable[Library], call: Callable[[Library], T]) -> dict[int, T]:
    """Make a call on each library, all at the same time; the answers by pid.

    Every call has ended when this returns or raises. The error of a process that has died is none: it
    is left out.
    """
    asked = [_Call(library, call) for library in libraries]
    if len(asked) == 1:
        asked[0].run()
    else:
        for thread in [Thread(one.run) for one in asked]:
            thread.join()
    for one in asked:
        if one.error is not None and one.library.process.alive:
            raise one.error
    return {one.library.pid: one.answer[0] for one in asked if one.answer}


class _Call:
    """A call on one library, made by a thread of its own."""

    __slots__ = ("_call", "answer", "error", "library")

    def __init__(self, library: Library, call: Callable[[Library], Any]) -> None:
        self.library = library
        self._call = call
        self.answer: list[Any] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.answer.append(self._call(self.library))
        except BaseException as error:  # raised again by each()
            self.error = error


def is_old(process: GpuProcess) -> bool:
    """Whether the library in a process, which may be frozen, cannot move memory."""
    page = find(process.pid)
    return page is None or page.minor < MINOR


def has_own(process: GpuProcess) -> bool:
    """Whether the library is at work in the process itself.

    A child holds its parent's page until its exec, or until the library looks after it.
    """
    return process.library and find(process.pid) is not None


def threads(pids: Iterable[int]) -> list[int]:
    """The threads of the library in some processes."""
    found = []
    for pid in pids:
        for tid in proc.threads(pid):
            try:
                if proc.comm(tid) in THREADS:
                    found.append(tid)
            except OSError:
                continue
    return found
