"""The journal of an operation: facts and steps, written before they count, read by whoever recovers.

One JSON object a line. It lies on a file system that does not outlive a boot, and neither do the processes
it speaks of: surviving the death of the engine is all it has to do, so nothing is synced.
"""

from __future__ import annotations

import os

from diapause.runtime import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_LIMIT = 16 << 20


class Journal:
    """Owns the file; it exists as long as something may have to be undone."""

    __slots__ = ("_early", "_fd", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._early: dict[str, Any] = {}
        self._fd = -1

    def note(self, **facts: Any) -> None:
        """Add facts; later ones replace earlier ones of the same name."""
        if self._fd < 0:
            self._early.update(facts)
        else:
            self._write(facts)

    def add(self, **facts: Any) -> None:
        """Add facts to a journal that is there, of somebody who died."""
        if self._fd < 0:
            flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            self._fd = os.open(self.path, flags)
        self._write(facts)

    def begin(self, step: str) -> None:
        """A step is about to change something; the first one makes the file."""
        if self._fd < 0:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            self._fd = os.open(self.path, flags, 0o600)
            self._write(self._early)
        self._write({"begin": step})

    def _write(self, entry: Mapping[str, Any]) -> None:
        data = (json.dumps(entry) + "\n").encode()
        try:
            written = os.write(self._fd, data)  # one write: a reader never sees two that are mixed
        except OSError as e:
            raise OSError(e.errno, e.strerror, self.path) from None
        if written < len(data):  # what is not written does not count, so it must not be done
            raise OSError(28, "no space left on device", self.path)

    @property
    def exists(self) -> bool:
        return os.path.exists(self.path)

    def remove(self) -> None:
        """Nothing is left to undo."""
        self.close()
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            pass

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def read(path: str) -> dict[str, Any] | None:
    """All facts, the later ones winning, with `steps`: the steps begun, in order. None without a journal.

    A line that was cut off by the writer's death is left out: what it announced was not begun.
    """
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(_LIMIT)
    except FileNotFoundError:
        return None
    facts: dict[str, Any] = {}
    steps: list[str] = []
    for line in text.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            if isinstance(step := entry.pop("begin", None), str):
                steps.append(step)
            facts.update(entry)
    return {**facts, "steps": steps}
