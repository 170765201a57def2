"""How long each part of an operation took, and how much it moved."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Phases:
    """Collects phases in order; `start` is the moment of its making."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._entries: list[dict[str, Any]] = []
        self._texts: list[str] = []

    def add(self, name: str, seconds: float) -> None:
        start = max(0.0, self.since_start() - seconds)  # some phases run side by side
        self._entries.append(
            {"name": name, "ms": _milliseconds(seconds), "bytes": 0, "start_ms": _milliseconds(start)}
        )
        self._texts.append(name)

    def tell(self, name: str, *, text: str = "", size: int = 0) -> None:
        """Say what the last phase of this name did, and how many bytes it moved."""
        for index in reversed(range(len(self._entries))):
            if self._entries[index]["name"] == name:
                self._entries[index]["bytes"] = size
                self._texts[index] = text or name
                return

    def since_start(self) -> float:
        return time.monotonic() - self._start

    def texts(self) -> list[str]:
        """What each phase did, in words."""
        return list(self._texts)

    def entries(self) -> list[dict[str, Any]]:
        return [dict(entry) for entry in self._entries]


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 3)
