"""How an error of ours reaches the user: as runc's do.

One record of level error in the file of `--log` (clients show the last one), and the message as the first
line of stderr (the shim shows that one for a checkpoint). Nothing else is ever written to either.
"""

from __future__ import annotations

import os
import sys

from diapause.runtime import log, private
from diapause.runtime.container import state_dir
from diapause.runtime.errors import DiapauseError, Internal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.oci.args import Command


def failure(command: Command, error: BaseException) -> int:
    """Report and return the exit status."""
    subject = f"{command.verb} {command.id}".strip() or "diapause-runc"
    message = describe(subject, error)
    if command.log:
        log.append(command.log, "error", message, style=command.log_format)
    print_line(message)
    for note in getattr(error, "__notes__", ()) if isinstance(error, (DiapauseError, OSError)) else ():
        print_line(note)  # what runc said, or what could not be undone
    return 1


def warning(command: Command, message: str) -> None:
    """For the log alone: a warning on stderr would look like the reason of a failure."""
    if command.log:
        log.append(command.log, "warning", message, style=command.log_format)


def describe(subject: str, error: BaseException) -> str:
    """One line for any exception; a traceback of an unexpected one is saved in a file."""
    if isinstance(error, DiapauseError):
        return str(error)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{subject}: {where}{(error.strerror or str(error)).lower()} [os-error]"
    trace = _save_trace(error)
    why = f"unexpected {type(error).__name__}: {error}"
    return str(Internal("internal", subject, why, "please report this", log=trace))


def print_line(message: str) -> None:
    try:
        os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, os.fsencode(message + "\n"))
    except OSError:
        pass


def _save_trace(error: BaseException) -> str:
    import traceback

    try:
        path = f"{private.make(state_dir(), 'logs')}/trace-{os.getpid()}.txt"
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(traceback.format_exception(error))
    except (DiapauseError, OSError):
        return ""
    return path
