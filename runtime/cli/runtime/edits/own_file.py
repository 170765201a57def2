"""A file, or a symbolic link, that is ours as a whole: a drop-in."""

from __future__ import annotations

from dataclasses import dataclass

from diapause.runtime.cli.runtime.edits.edit import Note, edited


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFile:
    path: str
    text: str

    def made(self, now: str | None, note: Note | None, *, force: bool) -> tuple[str | None, Note | None]:
        ours = note["text"] if note else None
        if now is None or force or now == ours:
            return self.text, {"kind": "own-file", "text": self.text}
        if now == self.text:
            return now, note
        why = (
            "it was edited since it was installed" if note else "it is there and was not made by this command"
        )
        raise edited(self.path, why)


def undone(path: str, now: str | None, note: Note, *, force: bool) -> str | None:
    if now is None or now == note["text"] or force:
        return None
    raise edited(path, "it was edited since it was installed")
