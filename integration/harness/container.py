"""A container that `ctr` started: its output, its checkpoints, its restore.

`ctr run -d` and `ctr c restore --live` return at once and take their ends of the FIFOs with them, in every
version, so nothing that a detached container prints can be read through them. The workload therefore writes
to a file of its own rootfs (`/out/log`): the client's `--rw` moves it with the checkpoint, at the length that
the process's file offset expects, and the bundle's mounted rootfs shows it from outside.
"""

import re
import signal
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from integration.harness import cgroup, proc
from integration.harness.diapause import REAL_GPU
from integration.harness.output import Output
from integration.harness.wait import until

if TYPE_CHECKING:
    from integration.harness.node import Node


@dataclass(eq=False)
class Container:
    node: "Node"
    id: str
    _seen: str = field(default="", repr=False)

    # what it is doing

    def status(self) -> str:
        """RUNNING, PAUSED, STOPPED, CREATED, or an empty string without a task."""
        return self._task()[1]

    def pid(self) -> int:
        """The host pid of init, 0 without one."""
        return int(self._task()[0] or 0)

    def _task(self) -> tuple[str, str]:
        found = re.search(rf"^{re.escape(self.id)}\s+(\d+)\s+(\w+)", self.node.ctr("task", "ls"), re.M)
        return (found[1], found[2]) if found else ("", "")

    @property
    def output(self) -> Output:
        return Output(self._log)

    def _log(self) -> str:
        try:
            self._seen = (self.node.daemon.bundle(self.id) / "rootfs/out/log").read_text(errors="replace")
        except OSError:  # gone with its container: the last text stands
            pass
        return self._seen

    def processes(self) -> list[int]:
        """The host pids of all its processes."""
        pid = self.pid()
        return sorted([pid, *proc.descendants(pid)]) if pid else []

    def frozen(self) -> bool:
        return cgroup.frozen(self.pid())

    def goes_on(self, *, by: int = 5, seconds: float = 20.0) -> int:
        """Assert that it runs and prints `by` more right steps; return the last one."""
        status = until(lambda: self.status() if self.status() != "PAUSING" else "", f"status of {self.id}")
        assert status == "RUNNING", f"{self.id} is {status or 'gone'}: {self._log()[-300:]}"
        assert not self.frozen(), f"{self.id} is frozen"
        return self.output.wait_step(self.output.step() + by, seconds=seconds)

    # what is done with it

    def checkpoint(self, reference: str = "", *, seconds: float = 60.0) -> str:
        """`ctr c checkpoint --task --rw`; return the image's name. The container runs on, as ctr means it."""
        reference = reference or self.node.reference()
        self.node.ctr("c", "checkpoint", "--rw", "--task", self.id, reference, seconds=seconds)
        index = self.node.ctr("i", "ls", "-q", f"name=={reference}")
        assert reference in index
        return reference

    def checkpoint_exit(self, image: str, work: str = "") -> None:
        """`ctr t checkpoint --exit --image-path`: the task ends, its image stays in a folder."""
        args = ["--image-path", image, *(["--work-path", work] if work else [])]
        self.node.ctr("t", "checkpoint", "--exit", *args, self.id)

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Kill all processes and wait until the task has stopped."""
        if self.status() in ("", "STOPPED"):
            return
        self.node.ctr("t", "kill", "-s", str(int(number)), self.id)
        until(lambda: self.status() in ("", "STOPPED"), f"end of {self.id}")

    def _signal(self, number: int) -> None:
        """Send a signal and wait a while for the end."""
        if self.status() in ("", "STOPPED"):
            return
        self.node.quiet("t", "kill", "-s", str(int(number)), self.id)
        end = time.monotonic() + 10
        while self.status() not in ("", "STOPPED") and time.monotonic() < end:
            until(lambda: True, "a moment")

    def remove(self) -> None:
        """Kill it and remove the task, the container and its snapshot."""
        if self.status() == "PAUSED":
            self.node.quiet("t", "resume", self.id)
        if self.status():
            if REAL_GPU:  # a driver may hang on a restored process that is killed
                self._signal(signal.SIGTERM)
            self._signal(signal.SIGKILL)
            self.node.quiet("t", "rm", self.id)
        self.node.quiet("c", "rm", self.id)
        self.node.quiet("snapshot", "rm", self.id)
