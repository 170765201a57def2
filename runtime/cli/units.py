"""Sizes and times as people write them."""

from __future__ import annotations

import time

_SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_AGES = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))


def size(bytes: int) -> str:
    """Three digits: 1.21 GiB, 12.1 MiB, 121 KiB."""
    value = float(bytes)
    for unit in _SIZES:
        if value < 999.5 or unit == _SIZES[-1]:
            break
        value /= 1024
    if unit == "B":
        return f"{bytes} B"
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{digits}f} {unit}"


def duration(ms: float) -> str:
    """0.42 ms, 12 ms, 1.21 s, 3 min 20 s."""
    if ms < 10:
        return f"{ms:.2f} ms"
    if ms < 999.5:
        return f"{ms:.0f} ms"
    if ms < 99_950:
        return f"{ms / 1000:.3g} s"
    minutes, seconds = divmod(round(ms / 1000), 60)
    return f"{minutes} min {seconds} s"


def age(seconds: float) -> str:
    """The largest unit of a time that has passed: 3 d, 5 h, 40 s."""
    for unit, length in _AGES:
        if seconds >= length:
            return f"{seconds // length:.0f} {unit}"
    return "0 s"


def seconds_of(text: str) -> int | None:
    """The seconds in 90s, 30m, 12h or 7d; None for anything else."""
    lengths = dict(_AGES)
    number, unit = text[:-1].strip(), text[-1:]
    if unit not in lengths or not number.isascii() or not number.isdigit() or len(number) > 9:
        return None
    return int(number) * lengths[unit]


def moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
