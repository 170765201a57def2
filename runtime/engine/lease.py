"""One operation per container at a time. The kernel frees the lease of a dead one."""

from __future__ import annotations

import os
import time

from diapause.runtime.errors import NotFound, Unavailable
from diapause.runtime.linux.locks import Lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.container import Container


_SHORT = "release"  # what a controller says that asks a library what it has freed: about a millisecond
_PATIENCE = 3.0  # seconds; it gives up after one
_SAYS = 0.1  # seconds for whoever has just taken it to say what for
_TICK = 0.002


def take(container: Container, operation: str) -> Lock:
    """The container's lock, at once, or when a controller's look at it is over. The caller owns it.

    Raises Unavailable (code container-busy) while another operation holds it.
    """
    path = f"{container.directory}/lock"
    try:
        lock = Lock.try_take(path)
    except FileNotFoundError:  # a directory made anew would be nobody's and stay
        what = f"{operation} {container.id}"
        raise NotFound("container-missing", what, "container does not exist", "it was just deleted") from None
    start = time.monotonic()
    while lock is None and time.monotonic() - start < (_PATIENCE if _SHORT in _holder(path) else _SAYS):
        time.sleep(_TICK)
        lock = Lock.try_take(path)
    if lock is None:
        raise Unavailable(
            "container-busy", f"{operation} {container.id}", f"another operation holds it{_holder(path)}",
            "repeat it when that is done",
        )  # fmt: skip
    lock.write(f"{operation} {os.getpid()}\n")
    return lock


def _holder(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            operation, _, pid = file.readline(64).strip().partition(" ")
    except OSError:
        return ""
    return f" ({operation}, process {pid})" if pid.isdigit() else ""
