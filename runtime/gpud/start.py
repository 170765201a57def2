"""Starting a controller: a process of its own that outlives whoever needed it first."""

from __future__ import annotations

import os
import sys
import time

from diapause.runtime import errors, private
from diapause.runtime.container import run_dir
from diapause.runtime.gpud import names
from diapause.runtime.linux.spawn import spawn

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from diapause.runtime.linux.deadline import Deadline
    from diapause.runtime.linux.spawn import Child

_TICK = 0.01  # seconds between two looks whether it listens
_KEPT = 256 << 10  # bytes of an earlier log that stay


def start(
    gpu: str, libcuda: str, deadline: Deadline, connect: Callable[[], socket.socket | None]
) -> socket.socket:
    """Start the controller of a GPU and connect to it. Two at once are no harm: one takes the lock.

    Raises Unavailable when it ends, or does not listen in time.
    """
    directory = _directory(gpu)
    while True:
        child = _spawn(gpu, libcuda, directory)
        try:
            end = _await(child, deadline, connect)
        finally:
            os.close(child.pidfd)  # the program stays: Child.close() would kill it
        if end is not None:
            return end
        if child.status or deadline.expired:
            break  # with status 0 it found another one that had the lock, and perhaps was about to end
    why = f"it ended with status {child.status}" if child.status else "it does not listen"
    raise errors.Unavailable(
        "gpud-not-started", f"start of the controller of {gpu}", why, f"look at {directory}/log"
    )


def begin(gpu: str, libcuda: str) -> None:
    """Start the controller of a GPU and do not wait for it. Raises OSError, InvalidArgument."""
    child = _spawn(gpu, libcuda, _directory(gpu))
    os.close(child.pidfd)


def _directory(gpu: str) -> str:
    if not names.is_gpu(gpu):
        why = f"{gpu[:80]!r} is no UUID of a GPU"
        raise errors.InvalidArgument("gpud-bad-name", "start of a controller", why)
    return private.make(run_dir(), "gpud", gpu)


def _await(
    child: Child, deadline: Deadline, connect: Callable[[], socket.socket | None]
) -> socket.socket | None:
    """A connection, None when the program ended or has not listened in time."""
    while not deadline.expired:
        ended = child.poll() is not None  # before the look: it may listen and hand over in between
        if (end := connect()) is not None:
            return end
        if ended:
            break
        time.sleep(_TICK)
    return None


def _spawn(gpu: str, libcuda: str, directory: str) -> Child:
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    log = os.open(f"{directory}/log", flags, 0o600)
    try:
        if os.fstat(log).st_size > _KEPT:
            os.ftruncate(log, 0)
        return spawn(
            [sys.executable, "-I", "-m", "diapause.runtime.gpud", "--gpu", gpu, "--libcuda", libcuda],
            env=_environment(libcuda), stdout=log, stderr=log, outlive=True, oom_score_adj="0", sigmask=(),
        )  # fmt: skip
    finally:
        os.close(log)


def _environment(libcuda: str) -> dict[str, str]:
    """Ours, without what would hide GPUs; the driver finds its compiler of kernels beside its library."""
    kept = {name: value for name, value in os.environ.items() if name.startswith("DIAPAUSE_")}
    beside = os.path.dirname(os.path.realpath(libcuda))
    search = [beside, *filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":"))]
    return {
        **kept,
        "PATH": os.environ.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"),
        "LD_LIBRARY_PATH": ":".join(search),
        "CUDA_CACHE_DISABLE": "1",  # the kernel is small, and there is no home
        "CUDA_MODULE_LOADING": "LAZY",
        "LANG": "C.UTF-8",
    }
