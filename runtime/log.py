"""runc's log format: what `--log FILE --log-format json|text` of a verb receives."""

from __future__ import annotations

import os
import time


def record(level: str, message: str, *, style: str = "text") -> str:
    """One line, as runc (logrus) writes it: in json the last record of level error is what clients show."""
    from diapause.runtime.json import dumps

    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    if style == "json":
        return dumps({"level": level, "msg": message, "time": when}) + "\n"
    return f'time="{when}" level={level} msg={dumps(message)}\n'


def append(path: str, level: str, message: str, *, style: str = "text") -> None:
    """Append a record in one write; a log that cannot be written must not stop the verb."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError:
        return
    try:
        os.write(fd, record(level, message, style=style).encode())
    except OSError:
        pass
    finally:
        os.close(fd)
