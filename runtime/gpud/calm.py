"""Work in the background gives way to copies: what is made ready for later must not slow down the present."""

from __future__ import annotations

import threading
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class Calm:
    """Counts copies; background threads look here between two steps."""

    def __init__(self) -> None:
        self._copies = 0
        self._closed = False
        self._changed = threading.Condition()

    @contextmanager
    def disturbed(self) -> Iterator[None]:
        """A copy is going on."""
        with self._changed:
            self._copies += 1
        try:
            yield
        finally:
            with self._changed:
                self._copies -= 1
                self._changed.notify_all()

    def wait(self) -> bool:
        """Until nothing is copied; whether there is still a use for what is made."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or not self._copies)
            return not self._closed

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Background threads end at their next look."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
