"""A marked block at the end of a TOML file that belongs to somebody else.

TOML allows a table anywhere as long as it is defined once, so appending changes nothing that stands before.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from diapause.runtime.cli.runtime.edits.edit import Note, edited
from diapause.runtime.cli.runtime.toml import lookup, parse

BEGIN = "# diapause runtime: begin; removed by `diapause runtime uninstall`\n"
END = "# diapause runtime: end\n"
_BLOCK = re.compile(re.escape(BEGIN) + r".*?" + re.escape(END), re.S)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    path: str
    tables: tuple[tuple[str, ...], ...]  # what the block defines, ours first
    head: str  # lines that only a new file gets: its version
    text: str

    @property
    def block(self) -> str:
        return f"{BEGIN}{self.text}{END}"

    def made(self, now: str | None, note: Note | None, *, force: bool) -> tuple[str | None, Note | None]:
        if now is None:
            return self.head + self.block, {"kind": "block", "added": self.block, "head": self.head}
        present = _find(self.path, now)
        if present == self.block and note:
            return now, note
        if present:
            if not force and not (note and present in note["added"]):
                raise edited(self.path, "the block of `diapause runtime` in it was edited")
            return now.replace(present, self.block), {
                "kind": "block", "added": (note or {}).get("added", present).replace(present, self.block),
                "head": (note or {}).get("head", ""),
            }  # fmt: skip
        if (there := lookup(parse(self.path, now), self.tables[0])) is not None:
            if there == lookup(tomllib.loads(self.text), self.tables[0]):
                return now, None
            raise edited(self.path, f"it defines [{'.'.join(self.tables[0])}] in another way")
        added = ("" if now.endswith("\n") or not now else "\n") + self.block
        _check(self.path, now, now + added, self.tables)
        return now + added, {"kind": "block", "added": added, "head": ""}


def undone(path: str, now: str | None, note: Note, *, force: bool) -> str | None:
    if now is None:
        return None
    if note["added"] in now:
        rest = now.replace(note["added"], "", 1)
    else:
        present = _find(path, now)
        if present and not force:
            raise edited(path, "the block of `diapause runtime` in it was edited")
        rest = now.replace(present, "", 1)
    return None if note["head"] and rest == note["head"] else rest


def without(text: str | None) -> str | None:
    """The text with no block of ours, as others wrote it."""
    return None if text is None else _BLOCK.sub("", text)


def _find(path: str, text: str) -> str:
    found = _BLOCK.findall(text)
    if len(found) > 1 or text.count(BEGIN) != len(found) or text.count(END) != len(found):
        raise edited(path, "the markers of the block of `diapause runtime` in it are not a pair any more")
    return found[0] if found else ""


def _check(path: str, before: str, after: str, tables: tuple[tuple[str, ...], ...]) -> None:
    """That the block is one for the parser too: an inline table above it would make the file invalid."""
    old = parse(path, before)
    try:
        new = tomllib.loads(after)
    except tomllib.TOMLDecodeError as e:
        raise edited(path, f"a table of the block cannot be added: {e}") from None
    for table in tables:
        _remove(new, table)
    if _without_empty(new) != _without_empty(old):
        raise edited(path, "the block would change other tables")


def _remove(data: dict[str, Any], table: tuple[str, ...]) -> None:
    for key in table[:-1]:
        data = data[key]
    del data[table[-1]]


def _without_empty(data: Mapping[str, Any]) -> dict[str, Any]:
    plain = {key: _without_empty(value) if isinstance(value, dict) else value for key, value in data.items()}
    return {key: value for key, value in plain.items() if value != {}}
