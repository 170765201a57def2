"""A check that runs beside other work."""

from __future__ import annotations

from diapause.runtime.linux.thread import Thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Background:
    """Runs `check` in a thread; result() waits for it and raises what it raised."""

    def __init__(self, check: Callable[[], None]) -> None:
        self._check = check
        self._error: BaseException | None = None
        self._thread = Thread(self._run)

    def _run(self) -> None:
        try:
            self._check()
        except BaseException as error:  # handed to the thread that asks
            self._error = error

    @property
    def done(self) -> bool:
        return not self._thread.alive

    def result(self) -> None:
        self._thread.join()
        if self._error is not None:
            raise self._error
