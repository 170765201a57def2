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
    """Append one record a phase to `--log`, if it is there and in JSON; a log never fails an operation."""
    if not request.log or request.log_format != "json" or request.settings.log_level != "info":
        return
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    lines = []
    for entry, text in zip(done.entries(), done.texts(), strict=True):
        message = f"{operation} {request.id}: {text}"
        fields = {"phase": entry["name"], "ms": entry["ms"], "bytes": entry["bytes"]}
        lines.append(json.dumps({"level": "info", "msg": message, "time": when, **fields}) + "\n")
    try:
        fd = os.open(request.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.write(fd, "".join(lines).encode())
        finally:
            os.close(fd)
    except OSError:
        pass
