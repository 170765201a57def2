"""Sizes and times as people write them."""

import pytest

from diapause.runtime.cli import table, units


@pytest.mark.parametrize(
    ("bytes", "text"),
    [
        (0, "0 B"), (999, "999 B"), (1000, "0.98 KiB"), (1024, "1.00 KiB"), (256 << 20, "256 MiB"),
        (10 << 20, "10.0 MiB"), (141 * (1 << 30), "141 GiB"), ((1 << 40) - 1, "1.00 TiB"),
        (1 << 62, "4096 PiB"),
    ],
)  # fmt: skip
def test_a_size_has_three_digits(bytes: int, text: str) -> None:
    assert units.size(bytes) == text


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0.00 ms"),
        (0.424, "0.42 ms"),
        (12.4, "12 ms"),
        (1210, "1.21 s"),
        (99000, "99 s"),
        (200000, "3 min 20 s"),
    ],
)
def test_a_duration(ms: float, text: str) -> None:
    assert units.duration(ms) == text


def test_ages() -> None:
    assert [units.age(s) for s in (0.5, 59, 60, 7200, 86400 * 3.9)] == ["0 s", "59 s", "1 m", "2 h", "3 d"]
    assert [units.seconds_of(t) for t in ("90s", "30m", "12 h", "7d")] == [90, 1800, 43200, 604800]
    assert [units.seconds_of(t) for t in ("", "d", "7", "7w", "-1d", "1.5d", "²d")] == [None] * 7


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    rows = [["a", "1"], ["long", "234"]]

    assert table.lines(("N", "VALUE"), rows, right=(1,)) == ["N     VALUE", "a         1", "long    234"]
    assert table.lines(("N",), []) == ["N"]


def test_nothing_reaches_the_terminal_that_it_would_obey() -> None:
    assert table.plain("a\x1b[2J\n\x9bü") == "a?[2J??ü"
