"""The gate in the page of a process that is frozen, and can answer nobody."""

import os

from diapause.runtime import errors
from diapause.runtime.engine.control.page import GATE, Gate
from diapause.runtime.engine.control.search import opened


def hold(pid: int, pidfd: int) -> Gate:
    """Let no call of the process begin when it is thawed; says what the gate was.

    The process, held by `pidfd`, is frozen: nobody writes the gate at the same time. Raises NotFound
    for a process without a page of its own.
    """
    return _change(pid, pidfd, Gate.OPEN, Gate.CLOSING)


def release(pid: int, pidfd: int) -> Gate:
    """Take hold() back before anybody has asked the process to be quiet; says what the gate was."""
    return _change(pid, pidfd, Gate.CLOSING, Gate.OPEN)


def _change(pid: int, pidfd: int, before: Gate, after: Gate) -> Gate:
    with opened(pid, pidfd) as found:
        if found is None:
            raise errors.NotFound(
                "control-gate-missing",
                f"hold the calls of process {pid}",
                "it holds no control page of its own",
            )
        fd, page = found
        if page.gate == before:
            os.pwrite(fd, after.to_bytes(4, "little"), GATE)
        return Gate(min(page.gate, Gate.CLOSED))
