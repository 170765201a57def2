"""Columns on a terminal, or in a pipe."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def lines(header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> list[str]:
    """A line for the header and each row; the columns whose numbers are in `right` are numbers."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]

    def line(row: Sequence[str]) -> str:
        cells = [
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        return "  ".join(cells).rstrip()

    return [line(header), *map(line, rows)]


def plain(text: str) -> str:
    """Text that somebody else chose, without what a terminal would obey."""
    return "".join(c if c.isprintable() else "?" for c in text)
