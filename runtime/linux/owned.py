"""What an operation owns, closed in reverse. `contextlib` has it too, and takes milliseconds to import."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol, TypeVar

    class Closable(Protocol):
        def close(self) -> None: ...

    T = TypeVar("T", bound=Closable)


class Owned:
    """All of it is closed, whatever raises; the last error is raised then, the others are its context."""

    def __init__(self) -> None:
        self._closers: list[Callable[[], object]] = []

    def callback(self, call: Callable[..., object], *arguments: Any) -> None:
        self._closers.append(lambda: call(*arguments))

    def enter(self, thing: T) -> T:
        """Own `thing`, and return it."""
        self._closers.append(thing.close)
        return thing

    def close(self) -> None:
        while self._closers:
            closer = self._closers.pop()
            try:
                closer()
            except BaseException:
                self.close()
                raise

    def __enter__(self) -> Owned:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
