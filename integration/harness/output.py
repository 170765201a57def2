"""The lines a workload printed, and what they say about its progress."""

import os
import re
import threading
from collections.abc import Callable
from itertools import pairwise

from integration.harness.wait import until

TAIL = 4096  # characters in which the last step is looked for first
_STEP = re.compile(r"^step[ =:](\d+)\b", re.M)


class Output:
    """Lines from a source that may grow; `read` returns the whole text so far."""

    def __init__(self, read: Callable[[], str]) -> None:
        self._read = read

    def text(self) -> str:
        return self._read()

    def lines(self) -> list[str]:
        """The complete lines."""
        return self.text().splitlines() if self.text().endswith("\n") else self.text().splitlines()[:-1]

    def steps(self) -> list[int]:
        """The numbers of the steps, in the order in which they were printed."""
        text = self.text()
        return [int(n) for n in _STEP.findall(text[: text.rfind("\n") + 1])]

    def step(self) -> int:
        """The last step, -1 before the first."""
        text = self.text()
        tail = text[text.rfind("\n", 0, -TAIL) + 1 : text.rfind("\n") + 1]
        steps = _STEP.findall(tail) or self.steps()[-1:]
        return int(steps[-1]) if steps else -1

    def wait_step(self, number: int, *, seconds: float = 20.0) -> int:
        """Wait until step `number` was printed; return the last one. A `BAD` line fails at once."""

        def reached() -> int | None:
            self.check()
            now = self.step()
            return now + 1 if now >= number else None

        try:
            return until(reached, f"step {number}", seconds=seconds) - 1
        except AssertionError as error:
            raise AssertionError(f"{error}; last output: {self.text()[-300:]!r}") from None

    def wait_line(self, pattern: str, *, seconds: float = 20.0) -> str:
        """Wait for a complete line that matches; return it."""

        def found() -> str | None:
            return next((line for line in self.lines() if re.search(pattern, line)), None)

        try:
            return until(found, f"line {pattern!r}", seconds=seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}; last output: {self.text()[-300:]!r}") from None

    def check(self) -> None:
        """No value that the workload itself found wrong, and no step twice."""
        text = self.text()
        assert "BAD" not in text, f"the workload found a wrong value: {text[text.index('BAD') :][:300]}"
        steps = self.steps()
        assert all(a < b for a, b in pairwise(steps)), f"steps out of order: {steps[-20:]}"


class Pipe:
    """A pipe whose read end a thread empties: what a container without containerd writes to."""

    def __init__(self) -> None:
        self._reader, self.writer = os.pipe()
        self._data = bytearray()
        self._thread = threading.Thread(target=self._drain, daemon=True)
        self._thread.start()
        self.output = Output(lambda: bytes(self._data).decode(errors="replace"))

    def _drain(self) -> None:
        while chunk := os.read(self._reader, 65536):
            self._data += chunk
        os.close(self._reader)

    def handed_over(self) -> None:
        """The container has its copy of the write end: close ours."""
        os.close(self.writer)
        self.writer = -1

    def finished(self) -> str:
        """Everything that was written, once every write end is closed."""
        self._thread.join(10)
        return self.output.text()
