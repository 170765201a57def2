"""Containers whose GPU memory has changed hands: the driver alone cannot save them any more.

A process that was given its memory back holds it as imported, and that is what the driver's restore does not
bring back. The snapshot would be lost together with the process.
"""

from __future__ import annotations

import os
import time

from diapause.runtime.container import run_dir
from diapause.runtime.engine import processes
from diapause.runtime.errors import Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from diapause.runtime.engine.processes import GpuProcess
    from diapause.runtime.engine.subject import Subject

_EXEC = 1.0  # seconds to meet a moment at which no child is between its fork and its exec
_TICK = 0.005


def note(container: str) -> None:
    """Before memory is given back; `container` is a key. The mark goes with the container's directory."""
    fd = os.open(_mark(container), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    os.close(fd)


def refuse_driver(container: str, what: str) -> None:
    """Raises Unavailable for a container that the driver must not save."""
    if os.path.exists(_mark(container)):
        why = "its GPU memory has changed hands before, and cannot do so now; the driver alone would lose it"
        todo = "repeat it when the container has settled; the log says what was in the way"
        raise Unavailable("gpu-memory-moved", what, why, todo)


def settled(subject: Subject, suited: Callable[[GpuProcess], bool]) -> list[GpuProcess]:
    """The GPU processes, at a moment when all are suited if there is one soon. The caller owns them."""
    end = time.monotonic() + (0 if subject.found_frozen else _EXEC)
    while True:
        found = processes.gpu_processes(subject.freezer.path, subject.devices)
        if all(suited(process) or not process.holds_device for process in found) or time.monotonic() > end:
            return found
        for process in found:
            process.close()
        time.sleep(_TICK)


def _mark(container: str) -> str:
    return f"{run_dir()}/c/{container}/moved"
