"""One poll set for everything an operation waits for: fds, children, traced threads, signals."""

from __future__ import annotations

import os
import select

from diapause.runtime.linux import libc, signals
from diapause.runtime.linux.deadline import Deadline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

_SIGINFO = 128  # sizeof(struct signalfd_siginfo); its first word is the signal's number


class Events:
    """Blocks the signals it reads for the whole process; use it before any thread exists.

    SIGCHLD comes for a child that ended and for a traced thread that stopped.
    """

    def __init__(self, numbers: Iterable[int]) -> None:
        wanted = {signals.SIGCHLD, *numbers}
        self.inherited_mask = signals.pthread_sigmask(signals.SIG_BLOCK, wanted)
        self._signals = libc.signalfd(sum(1 << (number - 1) for number in wanted))
        self._poll = select.poll()
        self._on_fd: dict[int, Callable[[], None]] = {}
        self._on_signal: dict[int, list[Callable[[int], None]]] = {number: [] for number in wanted}
        self.watch(self._signals, self._read_signals)

    def watch(self, fd: int, callback: Callable[[], None]) -> None:
        """Call back whenever `fd` is readable or hung up, until forget(fd)."""
        self._on_fd[fd] = callback
        self._poll.register(fd, select.POLLIN)

    def forget(self, fd: int) -> None:
        del self._on_fd[fd]
        self._poll.unregister(fd)

    def watches(self, fd: int) -> bool:
        return fd in self._on_fd

    def on_signal(self, number: int, callback: Callable[[int], None]) -> None:
        self._on_signal[number].append(callback)

    def off_signal(self, number: int, callback: Callable[[int], None]) -> None:
        self._on_signal[number].remove(callback)

    def until(self, done: Callable[[], bool], deadline: Deadline, *, tick: float = 0) -> bool:
        """Serve events until `done()`; False when the deadline came first.

        `tick` (seconds) is for conditions that no event announces.
        """
        while not done():
            if deadline.expired:
                return False
            limit = deadline.sooner(tick) if tick else deadline
            self._serve(limit.poll_ms())
        return True

    def serve(self) -> None:
        """Call back for what has happened already."""
        self._serve(0)

    def _serve(self, milliseconds: int) -> None:
        for fd, _ in self._poll.poll(milliseconds):
            callback = self._on_fd.get(fd)  # an earlier callback may have forgotten it
            if callback is not None:
                callback()

    def _read_signals(self) -> None:
        try:
            data = os.read(self._signals, 64 * _SIGINFO)
        except BlockingIOError:
            return
        numbers = [int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), _SIGINFO)]
        for number in dict.fromkeys(numbers):
            for callback in list(self._on_signal[number]):
                callback(number)

    def close(self) -> None:
        """Deliver what is pending in the old way from now on."""
        os.close(self._signals)
        signals.pthread_sigmask(signals.SIG_SETMASK, self.inherited_mask)

    def leave(self) -> None:
        """In a forked child: let go of the parent's fd; the signals stay blocked for an own Events."""
        os.close(self._signals)

    def __enter__(self) -> Events:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
