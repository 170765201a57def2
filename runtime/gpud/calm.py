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

    def wait(self) -> None:
        """Until nothing is copied."""
        with self._changed:
            self._changed.wait_for(lambda: not self._copies)
