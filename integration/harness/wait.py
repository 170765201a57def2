"""Waiting for a condition, with a deadline."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_tick = threading.Event()  # never set: `wait` on it is a pause that a signal can end


class TimedOut(AssertionError):
    """The condition did not come true in time."""


def until(condition: Callable[[], T | None], what: str, *, seconds: float = 20.0) -> T:
    """Return the first true value of `condition`; raise `TimedOut`, which names `what`, after `seconds`."""
    end = time.monotonic() + seconds
    pause = 0.002
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise TimedOut(f"no {what} within {seconds:g} s")
        _tick.wait(pause)
        pause = min(pause * 1.5, 0.05)
