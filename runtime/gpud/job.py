"""A copy that runs while others ask how far it is."""

from __future__ import annotations

import errno
import threading
import time

from diapause.runtime import errors
from diapause.runtime.gpud import log
from diapause.runtime.gpud.cuda import OUT_OF_MEMORY, CudaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Cancelled(Exception):
    """Nobody wants the result any more."""


class Job:
    """One save or load of a container. Runs `work(job)` in a thread; `done` tells when it is over."""

    def __init__(self, name: str, container: str, total: int, work: Callable[[Job], dict[str, Any]]) -> None:
        self.name = name
        self.container = container
        self.total = total  # bytes of device memory
        self.progress = 0  # bytes that are where they belong; written under the lock
        self.phases: dict[str, int] = {}  # milliseconds since the start
        self.outcome: dict[str, Any] | None = None
        self.error: errors.DiapauseError | None = None
        self._work = work
        self._started = time.monotonic()
        self._cancelled = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        try:
            outcome = self._work(self)
            outcome |= {"bytes": self.total, "ms": self.milliseconds, "phases": self.phases}
            with self._changed:
                self.outcome = outcome
        except BaseException as e:  # also of a bug: whoever waits has to be told
            error = as_error(e, f"{self.name} of GPU memory of container {self.container}")
            with self._changed:
                self.error = error
        with self._changed:
            self._changed.notify_all()
        self._report()

    def _report(self) -> None:
        if self.error:
            log.write("error", f"{self.name}: {self.error}", container=self.container, ms=self.milliseconds)
        else:
            fields = {name: value for name, value in (self.outcome or {}).items() if name != "files"}
            log.write("info", self.name, container=self.container, **fields)

    @property
    def milliseconds(self) -> int:
        return int((time.monotonic() - self._started) * 1000)

    @property
    def done(self) -> bool:
        return self.outcome is not None or self.error is not None

    def phase(self, name: str) -> None:
        """Note that a part of the work is over."""
        self.phases[name] = self.milliseconds

    def advance(self, size: int) -> None:
        """Some more bytes are where they belong. Raises Cancelled."""
        with self._changed:
            self.progress += size
        self.check()

    def check(self) -> None:
        if self._cancelled:
            raise Cancelled

    def wait(self, seconds: float) -> bool:
        """Whether it is over, at the latest after so many seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self.done, seconds)

    def cancel(self) -> None:
        """Have it end early, and wait for that: it looks between two pieces."""
        self._cancelled = True
        self._thread.join()


def as_error(error: BaseException, what: str) -> errors.DiapauseError:
    """Any exception as one that says what to do."""
    if isinstance(error, errors.DiapauseError):
        return error
    if isinstance(error, CudaError):
        if error.result == OUT_OF_MEMORY:
            return errors.Unavailable("gpud-short", what, f"{error}", "free memory on the GPU and repeat it")
        return errors.Internal(
            "gpud-driver", what, f"{error}", "look at the kernel's log for errors of the GPU"
        )
    if isinstance(error, Cancelled):
        return errors.Unavailable("gpud-cancelled", what, "it was given up")
    if isinstance(error, OSError):
        where = f" ({error.filename})" if error.filename else ""
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return errors.Unavailable("gpud-no-space", what, f"no space left{where}", "free space there")
        return errors.Internal(
            "gpud-io", what, f"{error.strerror}{where}", "look at the disk and its permissions"
        )
    return errors.Internal("gpud-bug", what, f"{type(error).__name__}: {error}", "report it with the log")
