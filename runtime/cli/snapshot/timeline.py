"""The phases of a checkpoint as bars on one axis of time."""

from __future__ import annotations

from diapause.runtime.cli import table, units

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEAST = 10  # columns of the axis


def placed(phases: Sequence[Mapping[str, Any]]) -> list[tuple[str, float, float, int]]:
    """(name, start, length, bytes) of each phase, times in ms; one that does not say when it began follows
    the one before it."""
    found, end = [], 0.0
    for phase in phases:
        start = float(phase.get("start_ms", end))
        found.append((str(phase["name"]), start, float(phase["ms"]), int(phase["bytes"])))
        end = start + float(phase["ms"])
    return found


def lines(phases: Sequence[Mapping[str, Any]], width: int) -> list[str]:
    """A line for each phase: its name, how long it took, how much it moved, and its bar."""
    found = placed(phases)
    total = max((start + length for _, start, length, _ in found), default=0.0)
    rows = [
        (table.plain(name), units.duration(length), units.size(bytes) if bytes else "", _rate(bytes, length))
        for name, _, length, bytes in found
    ]
    texts = table.lines(("PHASE", "TIME", "BYTES", "RATE"), rows, right=(1, 2, 3))
    room = max(map(len, texts))
    axis = max(_LEAST, width - room - 4)
    bars = [bar(start, length, total, axis) for _, start, length, _ in found]
    head = f"0{units.duration(total).rjust(axis - 1)}"
    return [f"{text.ljust(room)}  {bar}".rstrip() for text, bar in zip(texts, [head, *bars], strict=True)]


def bar(start: float, length: float, total: float, columns: int) -> str:
    """A bar from `start` on; the end is drawn in eighths of a column, and even the shortest is seen."""
    if total <= 0:
        return ""
    first = min(int(start / total * columns), columns - 1)
    eighths = max(1, round(length / total * columns * 8))
    eighths = min(eighths, (columns - first) * 8)
    full, rest = divmod(eighths, 8)
    return " " * first + "█" * full + (_EIGHTHS[rest] if rest else "")


def _rate(bytes: int, ms: float) -> str:
    return f"{units.size(int(bytes / ms * 1000))}/s" if bytes and ms >= 0.1 else ""
