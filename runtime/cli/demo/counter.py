"""The counter's output: a line for each step, with the checksum of its device memory."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

from diapause.runtime.errors import Internal

_STEP = re.compile(r"^step (\d+) sum (\S+)\n", re.M)
_BAD = re.compile(r"^BAD .*$", re.M)  # the counter found memory wrong and ended
_PATIENCE = 20.0  # seconds until the next step has to be there


@dataclass(frozen=True, slots=True)
class Step:
    """One line of the counter. It compared the checksum, computed on the GPU, with a model on the CPU."""

    number: int
    checksum: str

    def __str__(self) -> str:
        return f"step {self.number}, checksum {self.checksum}"


class Counter:
    """A running counter, read through the file that it appends to, from `start` on."""

    def __init__(self, pid: int, log: Path, start: int = 0) -> None:
        self.pid = pid
        self._log = log
        self._start = start  # bytes

    def steps(self) -> list[Step]:
        """Raises Internal if the counter found device memory wrong."""
        text = self._log.read_bytes()[self._start :].decode() if self._log.exists() else ""
        if bad := _BAD.search(text):
            raise Internal("counter-wrong", "demo: counter", f"wrong content of device memory: {bad[0]}")
        return [Step(int(number), checksum) for number, checksum in _STEP.findall(text)]

    def wait(self, count: int) -> list[Step]:
        """The steps, once there are `count`. Raises Internal when none comes any more."""
        end = time.monotonic() + _PATIENCE
        while len(steps := self.steps()) < count:
            if not Path(f"/proc/{self.pid}").exists():
                raise Internal("counter-stopped", "demo: counter", "it ended by itself")
            if time.monotonic() > end:
                raise Internal("counter-stopped", "demo: counter", f"no further step in {_PATIENCE:.0f} s")
            time.sleep(0.02)
        return steps


def compare(original: list[Step], restored: list[Step]) -> int:
    """How many steps both have made.

    The original went on after the checkpoint, the restored one goes back to it: it has to begin with a
    step that follows on one of the original's, miss none, and come to the same checksums. Raises Internal.
    """
    numbers = [step.number for step in restored]
    if not original[0].number < numbers[0] <= original[-1].number + 1:
        why = (
            f"it began at step {numbers[0]}, the original made {original[0].number} to {original[-1].number}"
        )
        raise Internal("counter-wrong", "demo: restored counter", why)
    if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        raise Internal("counter-wrong", "demo: restored counter", f"steps out of order: {numbers}")
    checksums = {step.number: step.checksum for step in original}
    again = [step for step in restored if step.number in checksums]
    for step in again:
        if step.checksum != checksums[step.number]:
            why = f"{step}, which was {checksums[step.number]} in the original"
            raise Internal("counter-wrong", "demo: restored counter", why)
    return len(again)
