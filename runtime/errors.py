"""The errors of Diapause.

Every error says what failed, why, and what to do, and carries a code that never changes once it was
released: scripts and the documentation refer to it. `str(error)` is one line, because runc's `--log`
records and the first line of stderr are what a client shows to its user.
"""


class DiapauseError(Exception):
    """Base of all errors that Diapause raises itself; `OSError` passes through with its path."""

    def __init__(self, code: str, what: str, why: str, todo: str = "", *, log: str = "") -> None:
        super().__init__(code, what, why, todo, log)
        self.code = code  # stable, lower case with dashes, listed in docs/errors.md
        self.what = what  # the operation and its object: "checkpoint c1"
        self.why = why  # the cause, with the value that was wrong
        self.todo = todo  # what would make it work
        self.log = log  # a file that survives the failure and holds the details

    def __str__(self) -> str:
        text = f"{self.what}: {self.why}"
        if self.todo:
            text += f"; {self.todo}"
        if self.log:
            text += f" (log: {self.log})"
        return f"{text} [{self.code}]".replace("\n", " ")


class NotFound(DiapauseError):
    """The thing that was named does not exist."""


class AlreadyExists(DiapauseError):
    """The thing that should be made is there already."""


class InvalidArgument(DiapauseError):
    """Input that can never work: a malformed file, an unknown key, a value out of range."""


class FailedPrecondition(DiapauseError):
    """A refusal before anything was touched: the system is not in a state that allows the operation."""


class Unavailable(DiapauseError):
    """It may work later: memory is short, another operation holds the container."""


class Internal(DiapauseError):
    """An operation failed on its way; what was done has been undone."""
