"""Ending a container for good: what is left of a restore that failed."""

from __future__ import annotations

import os

from diapause.runtime.engine import halfway, runc
from diapause.runtime.linux import freezer, pidfd, proc, signals
from diapause.runtime.linux.deadline import Deadline
from diapause.runtime.linux.spawn import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_KILL = 10.0  # seconds for killed processes to vanish
_DELETE = 30.0  # seconds for `runc delete --force`, which waits itself up to ten


def end(
    root: str, container_id: str, what: str, *, runtime: str, args: Sequence[str], env: Mapping[str, str],
    facts: Mapping[str, Any],
) -> None:  # fmt: skip
    """Kill every process of the container and have runc forget it. Does nothing if there is none.

    `facts` are halfway's. Raises OSError or TimeoutError for what cannot be taken away.
    """
    if runc.exists(root, container_id):
        state = runc.state(root, container_id, what)
        # Without its first process there is nothing to kill: the cgroup may be somebody else's by now.
        path = state.cgroup_paths.get("freezer") or state.cgroup_paths.get("")
        if path and os.path.isdir(path) and proc.is_alive(state.init, state.start_time):
            kill(path)
    halfway.clear(root, container_id, facts)
    # Its record of the failure would look like the reason of ours.
    run(
        runc.delete_argv(runtime, _without_log(args), container_id),
        deadline=Deadline.after(_DELETE),
        env=env,
        check=False,
    )


def kill(cgroup: str) -> None:
    """SIGKILL to every process below `cgroup`, again until none is left. Raises TimeoutError."""
    deadline = Deadline.after(_KILL)
    frozen = freezer.reopen(cgroup)
    while living := [pid for pid in freezer.processes(cgroup) if _kill(pid)]:
        frozen.thaw(deadline)
        if deadline.expired:
            raise TimeoutError(110, f"processes {living} do not end", cgroup)
        _wait(living[0], deadline)


def _kill(pid: int) -> bool:
    """Whether there was something to kill."""
    try:
        fd = pidfd.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        if pidfd.exited(fd):
            return False
        pidfd.pidfd_send_signal(fd, signals.SIGKILL)
    except ProcessLookupError:
        return False
    finally:
        os.close(fd)
    return True


def _wait(pid: int, deadline: Deadline) -> None:
    import select

    try:
        fd = pidfd.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        poll.poll(deadline.sooner(1.0).poll_ms())
    finally:
        os.close(fd)


def _without_log(args: Sequence[str]) -> list[str]:
    """The global arguments without `--log FILE`, in either spelling."""
    kept: list[str] = []
    skip = False
    for word in args:
        if skip:
            skip = False
        elif word.lstrip("-") == "log" and word.startswith("-"):
            skip = True
        elif not (word.startswith("-") and word.lstrip("-").startswith("log=")):
            kept.append(word)
    return kept
