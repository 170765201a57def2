"""The phases of an operation as records of runc's JSON log."""

from __future__ import annotations

import os
import time

from diapause.runtime import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.engine.phases import Phases
    from diapause.runtime.engine.request import Request


def phases(request: Request, operation: str, done: Phases) -> None:
    """Append one record a phase to `--log`, if it is there and in JSON."""
    if not request.log or request.log_format != "json" or request.settings.log_level != "info":
        return
    lines = []
    for entry, text in zip(done.entries(), done.texts(), strict=True):
        fields = {"phase": entry["name"], "ms": entry["ms"], "bytes": entry["bytes"]}
        lines.append(_line("info", f"{operation} {request.id}: {text}", **fields))
    _append(request, lines)


def warning(request: Request, message: str) -> None:
    """Append one record to `--log`, if it is there and in JSON."""
    if request.log and request.log_format == "json":
        _append(request, [_line("warning", message)])


def _line(level: str, message: str, **fields: object) -> str:
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return json.dumps({"level": level, "msg": message, "time": when, **fields}) + "\n"


def _append(request: Request, lines: list[str]) -> None:
    """A log never fails an operation."""
    try:
        fd = os.open(request.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.write(fd, "".join(lines).encode())
        finally:
            os.close(fd)
    except OSError:
        pass
