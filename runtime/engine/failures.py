"""The errors of driver calls, in words that say what to do."""

from __future__ import annotations

from diapause.runtime.engine.driver import results
from diapause.runtime.errors import FailedPrecondition, Internal, Unavailable
from diapause.runtime.linux import proc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from diapause.runtime.engine.driver.calls import Answer, Hung
    from diapause.runtime.errors import DiapauseError

_SUPPORT = "see docs/compatibility.md for what the driver cannot save"


def label(pid: int) -> str:
    """A process as messages name it."""
    try:
        return f"process {pid} ({proc.comm(pid)})"
    except OSError:
        return f"process {pid}"


def hung(what: str, error: Hung) -> DiapauseError:
    who = ", ".join(label(pid) for pid in error.pids)
    why = f"the driver did not answer {error.verb} of {who} in time"
    return Internal("driver-hung", what, why, "check the container, and the host's kernel log")


def cannot_be_saved(what: str, pid: int, answer: Answer) -> DiapauseError:
    """A process that holds a GPU, and of which the driver knows nothing it could save."""
    why = f"{label(pid)} holds a GPU device that the driver cannot save: {results.name(answer.result)}"
    todo = "a process that only uses NVML, or a child forked from a CUDA process, has to close the device"
    return FailedPrecondition("gpu-process-unsupported", what, why, todo)


def wrong_state(what: str, pid: int, state: int) -> DiapauseError:
    why = f"{label(pid)} is {results.state(state)} for the driver"
    todo = "end what another tool began" if state != results.FAILED else "the process is lost: restart it"
    return FailedPrecondition("gpu-process-state", what, why, todo)


def lock(what: str, pid: int, answer: Answer, seconds: float) -> DiapauseError:
    if answer.result == results.NOT_READY:
        why = f"{label(pid)} did not finish its work on the GPU within {seconds:g} s"
        return Unavailable("lock-timeout", what, why, "repeat it, or raise [driver] lock-timeout")
    why = f"the driver cannot lock {label(pid)}: {results.name(answer.result)}"
    return Internal("driver-lock", what, why, _SUPPORT)


def checkpoint(what: str, pid: int, answer: Answer) -> DiapauseError:
    if answer.result == results.NOT_SUPPORTED:
        why = f"{label(pid)} uses something that this driver cannot save: {results.name(answer.result)}"
        todo = "managed memory (cuMemAllocManaged) is the usual cause: run without it"
        return FailedPrecondition("driver-not-supported", what, why, todo)
    why = f"the driver cannot checkpoint {label(pid)}: {results.name(answer.result)}"
    return Internal("driver-checkpoint", what, why, _SUPPORT)


def restore(what: str, pid: int, answer: Answer) -> DiapauseError:
    why = f"the driver cannot restore {label(pid)}: {results.name(answer.result)}"
    if answer.result == results.OUT_OF_MEMORY:
        return Unavailable("gpu-out-of-memory", what, why, "free memory on the GPU and repeat it")
    return Internal("driver-restore", what, why, "check that the host has the same GPUs and the same driver")


def unlock(what: str, pid: int, answer: Answer) -> DiapauseError:
    why = f"the driver cannot unlock {label(pid)}: {results.name(answer.result)}"
    return Internal("driver-unlock", what, why)


def keep_appearing(what: str) -> DiapauseError:
    why = "processes that use the GPU keep appearing"
    return Unavailable("gpu-processes-appear", what, why, "repeat it when the container has settled")


def failing(answers: dict[int, Answer], alive: Iterable[int]) -> list[tuple[int, Answer]]:
    """The answers that are failures of living processes."""
    living = set(alive)
    return [(pid, a) for pid, a in answers.items() if a.result != results.SUCCESS and pid in living]
