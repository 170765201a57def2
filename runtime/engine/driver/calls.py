"""The seam to the driver's checkpoint API: a few calls, for several processes at once."""

from __future__ import annotations

import os

from diapause.runtime import native
from diapause.runtime.engine.driver import results
from diapause.runtime.errors import FailedPrecondition
from diapause.runtime.linux.deadline import Deadline
from diapause.runtime.linux.spawn import spawn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Protocol

    from diapause.runtime.engine.watch import Watch
    from diapause.runtime.linux.spawn import Child

    class Calls(Protocol):
        """Makes driver calls on processes of this host, by pid."""

        def ready(self, deadline: Deadline) -> None:
            """Wait until calls can be made. Raises FailedPrecondition when they never will."""

        def call(
            self,
            verb: str,
            pids: Iterable[int],
            deadline: Deadline,
            *,
            argument: int = 0,
            after: tuple[float, Callable[[], None] | None] = (0, None),
        ) -> dict[int, Answer]:
            """Make one call on each process, all in parallel; an answer per pid.

            `verb` is lock (argument: milliseconds), checkpoint, restore, unlock, state or restore-tid.
            Raises Hung when some have not answered at the deadline. `after` names something to do
            when that many seconds have gone by without all answers.
            """

        def close(self) -> None: ...


class Answer:
    """What the driver said to one call."""

    __slots__ = ("microseconds", "result", "value")

    def __init__(self, result: int, microseconds: int = 0, value: int = 0) -> None:
        self.result = result  # CUresult
        self.microseconds = microseconds  # inside the driver
        self.value = value  # of state and restore-tid


class Hung(Exception):
    """Calls that were given up: what the driver does with these processes is not known."""

    def __init__(self, verb: str, pids: Iterable[int]) -> None:
        self.verb = verb
        self.pids = sorted(pids)
        super().__init__(f"the driver did not answer {verb} of process {', '.join(map(str, self.pids))}")


class Cudactl:
    """The calls by diapause-cudactl, a process of its own that outlives us until none is in flight.

    A driver call must not be cut off, and one that hangs must not hang us: after Hung the helper is
    killed, and the next call goes to a fresh one.
    """

    def __init__(self, libcuda: str, watch: Watch) -> None:
        """Start it; the driver initialises itself while we go on."""
        self._libcuda = libcuda
        self._watch = watch
        self._sequence = 0
        self._pending: dict[int, int] = {}  # sequence number: pid
        self._answers: dict[int, Answer] = {}  # by pid
        self._start()

    def _start(self) -> None:
        self._greeting = ""
        self._buffer = b""
        self._ended = False
        stdin, self._requests = os.pipe2(os.O_CLOEXEC)
        self._replies, stdout = os.pipe2(os.O_CLOEXEC)
        env = {key: value for key, value in os.environ.items() if key in ("PATH", "DIAPAUSE_SOFTGPU_DEVICE")}
        argv = [native.require("bin", "diapause-cudactl"), "--libcuda", self._libcuda]
        try:
            self._child: Child = spawn(
                argv, env=env, stdin=stdin, stdout=stdout, outlive=True, sigmask=self._watch.sigmask
            )
        finally:
            os.close(stdin)
            os.close(stdout)
        self._watch.watch(self._replies, self._read)

    def _read(self) -> None:
        data = os.read(self._replies, 1 << 16)
        if not data:
            self._ended = True
            self._watch.forget(self._replies)
            return
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            self._take(line.decode(errors="replace"))

    def _take(self, line: str) -> None:
        words = line.split()
        if not words or not words[0].isdigit():
            self._greeting = line
        elif (pid := self._pending.pop(int(words[0]), None)) is not None:
            result, microseconds, value = map(int, words[1:4])
            self._answers[pid] = Answer(result, microseconds, value)

    def ready(self, deadline: Deadline) -> None:
        arrived = self._watch.wait(lambda: bool(self._greeting) or self._ended, deadline)
        words = self._greeting.split()
        if words[:2] == ["ready", "0"]:
            return
        if not arrived:
            why = "it did not initialise in time"
        elif words[:1] == ["ready"]:
            why = f"cuInit failed with {results.name(int(words[1]))}"
        else:
            why = self._greeting.removeprefix("failed ") or "diapause-cudactl ended without a word"
        raise FailedPrecondition(
            "driver-unusable", self._watch.what, f"driver {self._libcuda}: {why}",
            "check that the driver works on this host (nvidia-smi)",
        )  # fmt: skip

    def call(
        self,
        verb: str,
        pids: Iterable[int],
        deadline: Deadline,
        *,
        argument: int = 0,
        after: tuple[float, Callable[[], None] | None] = (0, None),
    ) -> dict[int, Answer]:
        self.ready(deadline)
        self._answers = {}
        lines = []
        for pid in pids:
            self._sequence += 1
            self._pending[self._sequence] = pid
            lines.append(f"{self._sequence} {verb} {pid} {argument}\n")
        os.write(self._requests, "".join(lines).encode())
        # A call in flight cannot be taken back, so a cancellation waits for it.
        seconds, act = after
        if act and not self._watch.until(lambda: not self._pending or self._ended, Deadline.after(seconds)):
            act()
        self._watch.until(lambda: not self._pending or self._ended, deadline)
        if self._pending:
            silent = list(self._pending.values())
            self._child.kill()  # the caller cannot be cut off any more than it is already
            self._pending.clear()
            self.close()
            self._start()
            raise Hung(verb, silent)
        return self._answers

    def close(self) -> None:
        """It ends by itself at the end of its input, as nothing is in flight; nobody waits for that."""
        os.close(self._requests)
        if not self._ended:
            self._watch.forget(self._replies)
        os.close(self._replies)
        self._child.poll()
        os.close(self._child.pidfd)
