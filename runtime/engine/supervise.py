"""The engine works in a child of the process that asked.

Clients kill a runtime process without warning (SIGKILL, at a timeout or when the shim dies). The child
survives that, notices, and undoes what it did. The parent only forwards signals and passes on the result.
"""

from __future__ import annotations

import os

from diapause.runtime import errors, json
from diapause.runtime.engine.watch import ENDING, Watch
from diapause.runtime.linux import pidfd, signals
from diapause.runtime.linux.deadline import Deadline
from diapause.runtime.linux.events import Events
from diapause.runtime.linux.files import write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from diapause.runtime.engine.request import Request

_FORWARDED = (*ENDING, signals.SIGQUIT, signals.SIGUSR1, signals.SIGUSR2)


def supervise(what: str, operation: Callable[[Watch], int]) -> int:
    """Run `operation` in a child and return what it returned, or raise what it raised.

    `what` names it in errors. Raises Internal (code engine-died) when the child was killed: its journal
    is still there, and whoever holds the lease next replays it.
    """
    reading, writing = os.pipe2(os.O_CLOEXEC)
    alive, ours = os.pipe2(os.O_CLOEXEC)  # hangs up when this process dies
    with Events(_FORWARDED) as events:
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            os.close(ours)
            _child(what, operation, writing, alive=alive, inherited=events)
        os.close(writing)
        os.close(alive)
        report = _follow(events, pid, reading)
    os.close(ours)
    if not report:
        why = "the engine was killed before it was done"
        raise errors.Internal("engine-died", what, why, "the next command for this container repairs it")
    return _passed_on(what, report)


def supervised(request: Request, what: str, operation: Callable[[Watch], int]) -> int:
    """supervise() for a verb: if the child is killed, its work is undone, or finished, at once."""
    try:
        return supervise(what, operation)
    except errors.Internal as error:
        if error.code == "engine-died":
            from diapause.runtime.engine.recover import after_death

            return after_death(request.root, request.id, error)
        raise


def _follow(events: Events, pid: int, channel: int) -> bytes:
    """Wait for the child's report, b"" if it ends without one."""
    child = pidfd.pidfd_open(pid)
    report: list[bytes] = []
    ended: list[bool] = []

    def read() -> None:
        data = os.read(channel, 1 << 16)
        report.append(data)
        if not data:
            events.forget(channel)
            ended.append(True)

    def forward(number: int) -> None:
        try:
            pidfd.pidfd_send_signal(child, number)
        except ProcessLookupError:
            pass

    for number in _FORWARDED:
        events.on_signal(number, forward)
    events.watch(channel, read)
    events.until(lambda: bool(ended), Deadline.never())  # the child keeps its own deadlines
    os.waitpid(pid, 0)
    os.close(child)
    os.close(channel)
    return b"".join(report)


def _child(
    what: str, operation: Callable[[Watch], int], channel: int, *, alive: int, inherited: Events
) -> None:
    """Never returns."""
    status = 1
    try:
        inherited.leave()
        watch = Watch(what, alive, inherited.inherited_mask)
        watch.oom_score_adj = _be_spared()
        report: dict[str, Any]
        try:
            report = {"status": operation(watch)}
        except BaseException as error:
            report = describe(error)
        watch.shielded = True
        write_all(channel, json.dumps(report).encode())
        status = 0
    except BrokenPipeError:
        pass  # the parent is gone, nobody asks any more
    finally:
        os._exit(status)


def _be_spared() -> str:
    """Ask the kernel, where it is permitted, to end something else when memory is short.

    Returns the former value, "" if it stays.
    """
    try:
        with open("/proc/self/oom_score_adj", "r+", encoding="ascii") as file:
            before = file.read().strip()
            file.write("-999")
    except OSError:
        return ""
    return before


def describe(error: BaseException) -> dict[str, Any]:
    """An exception as it travels to the parent."""
    notes = list(getattr(error, "__notes__", ()))
    if isinstance(error, errors.DiapauseError):
        fields = [error.code, error.what, error.why, error.todo, error.log]
        return {"error": type(error).__name__, "fields": fields, "notes": notes}
    if isinstance(error, OSError):
        return {"errno": error.errno, "text": error.strerror, "path": _path(error), "notes": notes}
    import traceback

    return {"trace": "".join(traceback.format_exception(error)), "text": repr(error), "notes": notes}


def _path(error: OSError) -> str | None:
    return None if error.filename is None else str(error.filename)


class EngineError(Exception):
    """An exception that nobody foresaw; its trace is that of the child."""


def _passed_on(what: str, report: bytes) -> int:
    found = json.loads(report.decode())
    if "status" in found:
        return int(found["status"])
    error: BaseException
    if "error" in found:
        error = getattr(errors, found["error"])(*found["fields"][:4], log=found["fields"][4])
    elif "errno" in found:
        error = OSError(found["errno"] or 0, found["text"] or "", found["path"])
    else:
        error = EngineError(f"{what}: {found['text']}")
        error.add_note(found["trace"])
    for note in found["notes"]:
        error.add_note(note)
    raise error
