"""A thread to wait for; `threading` takes longer to import than any of ours has to do."""

import _thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Thread:
    """Runs `call`, which raises nothing, from its making on. Does not keep the process alive."""

    __slots__ = ("_call", "_ended")

    def __init__(self, call: "Callable[[], None]") -> None:
        self._call = call
        self._ended = _thread.allocate_lock()
        self._ended.acquire()
        _thread.start_new_thread(self._run, ())

    def _run(self) -> None:
        try:
            self._call()
        finally:
            self._ended.release()

    @property
    def alive(self) -> bool:
        return self._ended.locked()

    def join(self) -> None:
        with self._ended:
            pass


class Flag:
    """Set once; a wait for it ends at once then."""

    __slots__ = ("_unset",)

    def __init__(self) -> None:
        self._unset = _thread.allocate_lock()
        self._unset.acquire()

    def set(self) -> None:
        if self._unset.locked():
            self._unset.release()

    def wait(self, seconds: float) -> bool:
        """Whether it was set in time. By one thread alone."""
        if not self._unset.acquire(timeout=seconds):
            return False
        self._unset.release()
        return True

    @property
    def is_set(self) -> bool:
        return not self._unset.locked()
