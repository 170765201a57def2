"""Changes of an engine's files: worked out completely, shown, then all made or none."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from diapause.runtime.cli.runtime.edits import block, keys, own_file
from diapause.runtime.cli.runtime.edits.edit import Edit, Note
from diapause.runtime.cli.runtime.place import LINK, Place
from diapause.runtime.cli.runtime.record import Record
from diapause.runtime.errors import DiapauseError, FailedPrecondition

_UNDO = {"own-file": own_file.undone, "block": block.undone, "keys": keys.undone}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A file's content before and after, None for no file."""

    path: str
    before: str | None
    after: str | None

    @property
    def is_link(self) -> bool:
        return (self.after or self.before or "").startswith(LINK)

    def diff(self) -> str:
        """As `diff -u` shows it, with /dev/null for no file."""
        old, new = ("/dev/null" if text is None else self.path for text in (self.before, self.after))
        before, after = ((text or "").splitlines() for text in (self.before, self.after))
        return "\n".join([*difflib.unified_diff(before, after, old, new, lineterm=""), ""])


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to change, and the record that holds afterwards."""

    changes: tuple[Change, ...]
    record: Record


def to_install(place: Place, edits: Sequence[Edit], record: Record, *, force: bool) -> Plan:
    """Also takes back what an earlier install did and this one does not want any more."""
    wanted = {edit.path for edit in edits}
    changes = [
        _taken_back(place, path, note, force) for path, note in record.notes.items() if path not in wanted
    ]
    notes: dict[str, Note] = {}
    for edit in edits:
        before = _read(place, edit.path, edit)
        earlier = record.notes.get(edit.path)
        after, note = edit.made(before, earlier, force=force)
        if note:
            notes[edit.path] = note
        changes.append(Change(path=edit.path, before=before, after=after))
    kept = Record(engine=record.engine, notes=notes, directories=list(record.directories))
    return Plan(changes=_real(changes), record=kept)


def to_uninstall(place: Place, record: Record, *, force: bool) -> Plan:
    changes = [_taken_back(place, path, note, force) for path, note in record.notes.items()]
    return Plan(changes=_real(changes), record=Record(engine=record.engine))


def make(place: Place, plan: Plan, before: Record) -> None:
    """Raises FailedPrecondition with everything as it was."""
    for change in plan.changes:
        place.refuse_unwritable(change.path, link=change.is_link)
    record = plan.record
    new = [path for change in plan.changes if change.after is not None
           for path in place.missing_directories(change.path)]  # fmt: skip
    record.directories += dict.fromkeys(path for path in new if path not in record.directories)
    done: list[Change] = []
    try:
        if record.notes:  # first, so that a run that is killed can be undone
            record.store(place)
        place.make_directories(new)
        for change in plan.changes:
            done.append(change)
            _put(place, change, change.after)
        record.store(place)
    except DiapauseError:
        for change in reversed(done):
            _put_back(place, change)
        place.remove_directories([path for path in record.directories if path not in before.directories])
        before.store(place)
        raise
    if not record.notes:
        place.remove_directories(before.directories)


def _taken_back(place: Place, path: str, note: Note, force: bool) -> Change:
    link = str(note.get("text") or "").startswith(LINK)
    before = place.read_link(path) if link else place.read(path)
    return Change(path=path, before=before, after=_UNDO[note["kind"]](path, before, note, force=force))


def _read(place: Place, path: str, edit: Edit) -> str | None:
    is_link = isinstance(edit, own_file.OwnFile) and edit.text.startswith(LINK)
    return place.read_link(path) if is_link else place.read(path)


def _real(changes: Sequence[Change]) -> tuple[Change, ...]:
    return tuple(change for change in changes if change.before != change.after)


def _put(place: Place, change: Change, content: str | None) -> None:
    if content is not None:
        place.write(change.path, content)
    else:
        place.remove(change.path, link=change.is_link)


def _put_back(place: Place, change: Change) -> None:
    try:
        _put(place, change, change.before)
    except FailedPrecondition:  # it could not be written in the first place
        pass
