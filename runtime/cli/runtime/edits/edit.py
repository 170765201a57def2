"""What the ways of changing a file have in common."""

from __future__ import annotations

from typing import Any, Protocol

from diapause.runtime.errors import FailedPrecondition

Note = dict[str, Any]  # of one edit, kept in the record: JSON that its `undone` understands


class Edit(Protocol):
    """One file of an engine. Texts are whole contents, None for no file."""

    @property
    def path(self) -> str: ...

    def made(self, now: str | None, note: Note | None, *, force: bool) -> tuple[str | None, Note | None]:
        """The content with the edit, and what undoing it needs; (now, None) if somebody else made it before.

        `note` is that of an earlier install. Raises FailedPrecondition rather than lose what others wrote.
        """


def edited(path: str, what: str) -> FailedPrecondition:
    todo = "take your change out, or say --force to have it replaced"
    return FailedPrecondition("engine-config-edited", path, what, todo)
