"""Keys in a JSON file that belongs to somebody else."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from diapause.runtime.cli.runtime.edits.edit import Note, edited
from diapause.runtime.errors import InvalidArgument

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    path: str
    values: tuple[tuple[Path, Any], ...]
    own: tuple[Path, ...]  # those of which another value is somebody else's, and not a default to change

    def made(self, now: str | None, note: Note | None, *, force: bool) -> tuple[str | None, Note | None]:
        data = parse(self.path, now)
        earlier = {tuple(entry["key"]): entry for entry in note["keys"]} if note else {}
        changed = []
        for key, value in self.values:
            before = get(data, key)
            mine = earlier.get(key)
            if (
                key in self.own
                and before not in ([], [value])
                and not force
                and not (mine and before == mine["after"])
            ):
                raise edited(self.path, f"{'.'.join(key)} is {json.dumps(before[0])}")
            if before != [value] or mine:
                changed.append(
                    {"key": list(key), "before": mine["before"] if mine else before, "after": [value]}
                )
                put(self.path, data, key, value)
        if not changed:
            return now, note
        text = now if now is not None and parse(self.path, now) == data else dumps(data, now)
        kept = note["text"] if note else now
        by_others = (
            note and now != note["written"]
        )  # then what was there at first is not what is to come back
        written = None if by_others else text
        return text, {"kind": "keys", "keys": changed, "text": kept, "written": written}


def undone(path: str, now: str | None, note: Note, *, force: bool) -> str | None:
    """Byte for byte what was there; once somebody wrote to the file, our keys only, where still ours."""
    if now is None or now == note["written"]:
        return note["text"]  # type: ignore[no-any-return]
    data = parse(path, now)
    for entry in reversed(note["keys"]):
        key = tuple(entry["key"])
        if get(data, key) == entry["after"]:
            take_out(data, key)
            if entry["before"]:
                put(path, data, key, entry["before"][0])
    if data == parse(path, now):
        return now
    return dumps(data, now) if data or note["text"] is not None else None


def parse(path: str, text: str | None) -> dict[str, Any]:
    """Raises InvalidArgument also for a key that stands there twice: writing the file anew would lose one."""
    if text is None or not text.strip():
        return {}
    try:
        data = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as e:
        raise InvalidArgument("engine-json-malformed", path, f"no JSON: {e}", "correct the file") from None
    if not isinstance(data, dict):
        raise InvalidArgument("engine-json-malformed", path, "it is no JSON object", "correct the file")
    return data


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} stands there twice")
    return found


def get(data: Any, key: Path) -> list[Any]:
    """[value], or [] where there is none."""
    for name in key:
        if not isinstance(data, dict) or name not in data:
            return []
        data = data[name]
    return [data]


def put(path: str, data: dict[str, Any], key: Path, value: Any) -> None:
    for name in key[:-1]:
        data = data.setdefault(name, {})
        if not isinstance(data, dict):
            raise edited(path, f"{name} is no object")
    data[key[-1]] = value


def take_out(data: dict[str, Any], key: Path) -> None:
    """With the objects around it that are empty then."""
    inner = data
    for name in key[:-1]:
        inner = inner[name]
    del inner[key[-1]]
    if len(key) > 1 and not inner:
        take_out(data, key[:-1])


def dumps(data: dict[str, Any], like: str | None) -> str:
    """Indented as the file was."""
    found = re.search(r'^([ \t]+)"', like or "", re.M)
    indent: int | str = found[1] if found else 4
    return json.dumps(data, indent=indent, ensure_ascii=False) + "\n"
