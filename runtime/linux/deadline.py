"""A point in time by which something has to be over; handed down, never restarted."""

import time

_NEVER = float("inf")


class Deadline:
    """An absolute point of the monotonic clock."""

    __slots__ = ("at",)

    def __init__(self, at: float) -> None:
        self.at = at

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        return cls(time.monotonic() + seconds)

    @classmethod
    def never(cls) -> "Deadline":
        """For waits that the operator bounds; say in a comment who does."""
        return cls(_NEVER)

    @property
    def remaining(self) -> float:
        """Seconds left, 0 when it has passed."""
        return max(0.0, self.at - time.monotonic())

    @property
    def expired(self) -> bool:
        return time.monotonic() >= self.at

    def poll_ms(self) -> int:
        """The timeout argument of poll(2): rounded up, -1 for never."""
        return -1 if self.at == _NEVER else -int(-self.remaining * 1000 // 1)

    def sooner(self, seconds: float) -> "Deadline":
        """This deadline, or `seconds` from now if that comes first."""
        return Deadline(min(self.at, time.monotonic() + seconds))
