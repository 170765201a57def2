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

    def add(self, name: str, seconds: float) -> None:
        self._entries.append({"name": name, "ms": round(seconds * 1000, 3), "bytes": 0})

    def moved(self, name: str, size: int) -> None:
        """Say how many bytes the last phase of this name moved."""
        for entry in reversed(self._entries):
            if entry["name"] == name:
                entry["bytes"] = size
                return

    def since_start(self) -> float:
        return time.monotonic() - self._start

    def entries(self) -> list[dict[str, Any]]:
        return [dict(entry) for entry in self._entries]
