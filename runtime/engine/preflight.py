"""What can be known to fail before anything is touched."""

from __future__ import annotations

import os

from diapause.runtime.engine import processes
from diapause.runtime.errors import FailedPrecondition, InvalidArgument
from diapause.runtime.linux import proc
from diapause.runtime.linux.freezer import FreezerV1
from diapause.runtime.store import layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from diapause.runtime.engine.processes import GpuProcess
    from diapause.runtime.engine.request import CheckpointRequest, Request
    from diapause.runtime.engine.runc import State
    from diapause.runtime.engine.subject import Subject
    from diapause.runtime.store.manifest import Process

_NOT_WITH_GPU = ("parent-path", "lazy-pages", "page-server", "pre-dump", "auto-dedup")


def flags(request: Request, what: str) -> None:
    """Refuse flags under which a snapshot would not be complete in its directory."""
    for word in request.verb_args:
        name = word.lstrip("-").partition("=")[0]
        if word.startswith("-") and name in _NOT_WITH_GPU:
            why = f"--{name} is not supported for a container with a GPU"
            raise InvalidArgument("flag-not-supported", what, why, "leave it out")


def image_directory(request: CheckpointRequest, what: str) -> None:
    path = request.image_path
    if os.path.lexists(path) and not os.path.isdir(path):
        raise InvalidArgument("image-path", what, f"{path} is not a directory", "choose another --image-path")
    try:
        entries = list(os.scandir(path))
    except FileNotFoundError:
        return
    for entry in entries:
        # CRIU would follow a link and overwrite what it leads to, and wait for the reader of a fifo.
        wanted = entry.name in layout.VOLATILE or layout.is_part(entry.name)
        if wanted and not entry.is_file(follow_symlinks=False):
            why = f"{path} has something in it that is no regular file: {entry.name}"
            raise InvalidArgument("image-path", what, why, "choose an empty --image-path")


def running(state: State, what: str) -> None:
    if not proc.is_alive(state.init, state.start_time):
        raise ended(what)
    if state.created:
        why = "container is created and not started"
        raise FailedPrecondition("container-not-running", what, why, "start it first")


def ended(what: str) -> FailedPrecondition:
    return FailedPrecondition("container-not-running", what, "container not running", "start it first")


def configuration(state: State, expected: str, what: str) -> None:
    """CRIU has to read our file: without it nothing would commit."""
    if state.criu_config != expected:
        why = (
            f"the container was created with org.criu.config {state.criu_config!r}, not through diapause-runc"
        )
        raise FailedPrecondition("criu-config-not-ours", what, why, "create the container again")


def libraries(subject: Subject, found: Sequence[GpuProcess]) -> bool:
    """Whether every process that holds a GPU has our library at work, with the engine `intercept`.

    It is refused where that engine was asked for by name, and left to the driver where it was ours to choose.
    """
    if subject.state["engine"] != "intercept":
        return False
    if not subject.state.get("explicit", True):
        return all(process.library for process in found)
    targets = tuple(subject.state["targets"])
    for process in found:
        if process.holds_device and not process.library and not _maps_library(process.pid, targets):
            from diapause.runtime.engine.failures import label

            why = f"{label(process.pid)} uses the GPU without the library of Diapause"
            todo = "it must load libcuda.so.1 from where the container has it; or use the engine `driver`"
            raise FailedPrecondition("gpu-process-without-library", subject.what, why, todo)
    return all(process.library for process in found)


def _maps_library(pid: int, targets: tuple[str, ...]) -> bool:
    """Whether it has our library mapped, as a child between fork and exec has.

    Such a child holds the device of its parent, and has let go of the control page. The real libcuda alone
    does not count: a process can find that by itself.
    """
    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as file:
            return any(line.rstrip().endswith(targets) for line in file)
    except OSError:
        return True  # it has ended


def alone(listed: Sequence[Process], cgroup: str, what: str) -> None:
    """runc 1.1 restores a copy of a running container into the cgroup of the original, with a warning.

    CRIU would save one of them, and the freezer stop both.
    """
    pids = [process.pid for process in listed]
    if len(set(pids)) < len(pids):
        why = f"another container has processes in its cgroup {cgroup}"
        todo = "end that one; a copy needs another cgroup, or the end of the original"
        raise FailedPrecondition("cgroup-shared", what, why, todo)


def traced(found: Sequence[GpuProcess], what: str) -> None:
    """A debugger's threads can neither be held by us nor dumped by CRIU."""
    from diapause.runtime.engine.failures import label

    for process in found:
        if proc.traced(process.pid):
            tracer = label(proc.tracer(process.pid, process.pid))
            why = f"{label(process.pid)} is traced by {tracer}"
            raise FailedPrecondition("process-traced", what, why, "detach the debugger or tracer first")


def stopped(subject: Subject, listed: Sequence[Process]) -> None:
    """CRIU waits for a thread that is stopped and frozen until its timeout, on cgroup version 1."""
    found = [process for process in listed if process.stopped]
    if found and isinstance(subject.freezer, FreezerV1):
        why = f"process {found[0].pid} ({found[0].comm}) is stopped, which criu cannot dump on cgroup v1"
        raise FailedPrecondition("process-stopped", subject.what, why, "continue it (SIGCONT) first")


def space(request: Request, pids: Sequence[int], what: str) -> None:
    """Refuse a dump that cannot fit where it goes."""
    needed = processes.memory(pids)
    path = request.image_path
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    found = os.statvfs(path)
    free = found.f_bavail * found.f_frsize
    if needed > free:
        why = f"it needs up to {needed} bytes in {request.image_path}, free are {free}"
        raise FailedPrecondition("no-space", what, why, "free space, or choose another --image-path")
