"""The freezer of a container's cgroup, version 1 and 2 alike."""

from __future__ import annotations

import os
import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Protocol

    from diapause.runtime.linux.deadline import Deadline

    class Freezer(Protocol):
        """Holds every task of a cgroup, its descendants included."""

        path: str

        def frozen(self) -> bool:
            """What was asked of this cgroup itself, whatever its ancestors do."""

        def freeze(self, deadline: Deadline) -> None:
            """Returns when every task is held. Raises TimeoutError after asking for the thaw again."""

        def thaw(self, deadline: Deadline) -> None:
            """Returns when tasks run. Raises TimeoutError, for instance below a frozen ancestor."""


_TICK = 0.0005  # seconds between two looks at a v1 state file, which cannot be polled


def find(cgroup_paths: Mapping[str, str], pid: int) -> Freezer:
    """The freezer of the container whose state.json of runc has these `cgroup_paths`.

    The first process of the container has to be in it: a stale file never leads to a stranger's
    cgroup. Raises FileNotFoundError when there is no freezer, PermissionError when `pid` is elsewhere.
    """
    freezer: Freezer
    if path := cgroup_paths.get("freezer"):
        freezer = FreezerV1(path)
    elif path := cgroup_paths.get(""):
        freezer = FreezerV2(path)
    else:
        raise FileNotFoundError(2, "no freezer in the container's cgroup paths", str(dict(cgroup_paths)))
    if pid not in processes(path):
        raise PermissionError(1, f"process {pid} is not in this cgroup", path)
    return freezer


def reopen(path: str) -> Freezer:
    """The freezer at a path that was verified before."""
    return FreezerV1(path) if os.path.exists(f"{path}/freezer.state") else FreezerV2(path)


def processes(path: str) -> list[int]:
    """The processes of a cgroup and of all below it, zombies left out by the kernel in v1 only."""
    pids: list[int] = []
    for folder, _, names in os.walk(path):
        if "cgroup.procs" in names:
            try:
                pids += map(int, _read(f"{folder}/cgroup.procs").split())
            except OSError:  # removed meanwhile, or a threaded cgroup: its domain lists the process
                continue
    return pids


class FreezerV1:
    """freezer.state, which has to be asked again and again while tasks are being created."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path
        os.stat(f"{path}/freezer.state")

    def frozen(self) -> bool:
        return _read(f"{self.path}/freezer.self_freezing").strip() == "1"

    def freeze(self, deadline: Deadline) -> None:
        looks = 0
        while True:
            # Writing again catches tasks that were forked meanwhile; a thaw in between frees a
            # freeze that got stuck on one of them.
            if looks % 20 == 0:
                if looks and looks % 200 == 0:
                    _write(f"{self.path}/freezer.state", "THAWED")
                _write(f"{self.path}/freezer.state", "FROZEN")
            if _read(f"{self.path}/freezer.state").strip() == "FROZEN":
                return
            looks += 1
            if deadline.expired:
                _write(f"{self.path}/freezer.state", "THAWED")
                raise TimeoutError(110, "tasks did not freeze in time", self.path)
            time.sleep(_TICK)

    def thaw(self, deadline: Deadline) -> None:
        _write(f"{self.path}/freezer.state", "THAWED")
        while _read(f"{self.path}/freezer.state").strip() != "THAWED":
            if deadline.expired:
                raise TimeoutError(110, "tasks did not thaw in time", self.path)
            time.sleep(_TICK)


class FreezerV2:
    """cgroup.freeze; cgroup.events tells when it has happened."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path
        os.stat(f"{path}/cgroup.freeze")

    def frozen(self) -> bool:
        return _read(f"{self.path}/cgroup.freeze").strip() == "1"

    def freeze(self, deadline: Deadline) -> None:
        _write(f"{self.path}/cgroup.freeze", "1")
        try:
            self._wait("1", deadline)
        except TimeoutError:
            _write(f"{self.path}/cgroup.freeze", "0")
            raise

    def thaw(self, deadline: Deadline) -> None:
        _write(f"{self.path}/cgroup.freeze", "0")
        self._wait("0", deadline)

    def _wait(self, value: str, deadline: Deadline) -> None:
        fd = os.open(f"{self.path}/cgroup.events", os.O_RDONLY | os.O_CLOEXEC)
        try:
            poll = select.poll()
            poll.register(fd, select.POLLPRI)
            while f"frozen {value}" not in os.pread(fd, 4096, 0).decode().splitlines():
                if not poll.poll(deadline.poll_ms()) and deadline.expired:
                    verb = "freeze" if value == "1" else "thaw"
                    raise TimeoutError(110, f"tasks did not {verb} in time", self.path)
        finally:
            os.close(fd)


def _read(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read()


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
