"""The counter's output: a line for each step, with the checksum of its device memory."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from diapause.runtime.errors import Internal

_LINE = re.compile(r"^step (\d+) checksum (\S+) (ok|BAD)$", re.M)
_PATIENCE = 20.0  # seconds until the next step has to be there


@dataclass(frozen=True, slots=True)
class Step:
    """One line of the counter; `good` says that device memory holds what it should at this step."""

    number: int
    checksum: str
    good: bool

    def __str__(self) -> str:
        return f"step {self.number}, checksum {self.checksum}"


class Counter:
    """Reads the output of a running counter through its root, from outside."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._log = Path(f"/proc/{pid}/root/out/log")

    def steps(self) -> list[Step]:
        text = self._log.read_text() if self._log.exists() else ""
        return [Step(int(number), checksum, word == "ok") for number, checksum, word in _LINE.findall(text)]

    def wait(self, enough: Callable[[list[Step]], bool]) -> list[Step]:
        """The steps, once there are enough. Raises Internal when none comes or one is wrong."""
        end = time.monotonic() + _PATIENCE
        while not enough(steps := self.steps()):
            if not Path(f"/proc/{self.pid}").exists():
                raise Internal("counter-stopped", "demo: counter", "it ended by itself")
            if time.monotonic() > end:
                raise Internal("counter-stopped", "demo: counter", f"no further step in {_PATIENCE:.0f} s")
            time.sleep(0.02)
        if bad := [step for step in steps if not step.good]:
            why = f"wrong content of device memory at step {bad[0].number}: {bad[0].checksum}"
            raise Internal("counter-wrong", "demo: counter", why)
        return steps
