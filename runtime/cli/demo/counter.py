"""The counter's output: a line for each step, with the checksum of its device memory."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from diapause.runtime.errors import Internal

LOG = "/out/log"  # in the container
_STEP = re.compile(r"^step (\d+) sum (\S+)$", re.M)
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
    """Reads the output of a running counter through its root, from outside."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._log = Path(f"/proc/{pid}/root{LOG}")

    def steps(self) -> list[Step]:
        """Raises Internal if the counter found device memory wrong."""
        try:
            text = self._log.read_text()
        except OSError:
            return []
        if bad := _BAD.search(text):
            raise Internal("counter-wrong", "demo: counter", f"wrong content of device memory: {bad[0]}")
        return [Step(int(number), checksum) for number, checksum in _STEP.findall(text)]

    def wait(self, enough: Callable[[list[Step]], bool]) -> list[Step]:
        """The steps, once there are enough. Raises Internal when none comes any more."""
        end = time.monotonic() + _PATIENCE
        while not enough(steps := self.steps()):
            if not Path(f"/proc/{self.pid}").exists():
                raise Internal("counter-stopped", "demo: counter", "it ended by itself")
            if time.monotonic() > end:
                raise Internal("counter-stopped", "demo: counter", f"no further step in {_PATIENCE:.0f} s")
            time.sleep(0.02)
        return steps
