"""The arguments of a request: every one is looked at before it is used."""

from __future__ import annotations

import os
import stat

from diapause.runtime import errors
from diapause.runtime.gpud import names
from diapause.runtime.store.gpu_index import MAX_ADDRESS, MAX_BLOCKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_GREATEST = (1 << 64) - 1
_MAX_SIZE = MAX_BLOCKS << 21  # bytes of one allocation


class Arguments:
    """What came with one request. Owns the fds until take_fds()."""

    def __init__(self, op: str, values: Mapping[str, Any], fds: list[int]) -> None:
        self._op = op
        self._values = values
        self._fds = fds

    def wrong(self, why: str) -> errors.InvalidArgument:
        return errors.InvalidArgument("gpud-bad-request", f"request {self._op}", why[:200])

    def container(self) -> str:
        value = self.text("container")
        if not names.is_container(value):
            raise self.wrong(f"container is {value[:80]!r}")
        return value

    def text(self, name: str, default: str | None = None) -> str:
        value = self._values.get(name, default)
        if not isinstance(value, str) or len(value) > 256:
            raise self.wrong(f"{name} is {str(value)[:80]!r}")
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        value = self._values.get(name, default)
        if not isinstance(value, bool):
            raise self.wrong(f"{name} is {str(value)[:80]!r}")
        return value

    def number(self, name: str, low: int, high: int, default: int | None = None) -> int:
        return self._number(name, self._values.get(name, default), low, high)

    def _number(self, name: str, value: object, low: int, high: int) -> int:
        if type(value) is not int or not low <= value <= high:
            raise self.wrong(f"{name} is {str(value)[:80]!r}")
        return value

    def items(self, name: str, most: int) -> Sequence[Any]:
        value = self._values.get(name)
        if not isinstance(value, list) or len(value) > most:
            raise self.wrong(f"{name} is no list of at most {most} entries")
        return value

    def process(self) -> int:
        return self.number("process", 1, (1 << 31) - 1)

    def ids(self, most: int) -> list[int]:
        found = [self._number("an id", value, 0, _GREATEST) for value in self.items("ids", most)]
        if len(set(found)) != len(found):
            raise self.wrong("an id comes twice")
        return found

    def allocations(self, most: int) -> list[tuple[int, int, int, int, int, bool]]:
        """(process, id, size, address, flags, whether an fd came with it) of each."""
        found = []
        for entry in self.items("allocations", most):
            if not isinstance(entry, list) or len(entry) != 6:
                raise self.wrong("an allocation has not six parts")
            process = self._number("a process", entry[0], 1, (1 << 31) - 1)
            number = self._number("an id", entry[1], 0, _GREATEST)
            size = self._number("a size", entry[2], 1, _MAX_SIZE)
            address = self._number("an address", entry[3], 0, MAX_ADDRESS - 1)
            flags = self._number("flags", entry[4], 0, (1 << 32) - 1)
            with_fd = self._number("the sixth part", entry[5], 0, 1)
            found.append((process, number, size, address, flags, bool(with_fd)))
        if len({entry[:2] for entry in found}) != len(found):
            raise self.wrong("an allocation comes twice")
        return found

    def take_fds(self, count: int) -> list[int]:
        """The fds, which belong to the caller from here on."""
        if len(self._fds) != count:
            raise self.wrong(f"{len(self._fds)} file descriptors came, {count} belong to it")
        fds, self._fds = self._fds, []
        return fds

    def take_directory(self) -> int:
        (fd,) = self.take_fds(1)
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            os.close(fd)
            raise self.wrong("the file descriptor is of no directory")
        return fd

    def take_pidfd(self) -> int:
        (fd,) = self.take_fds(1)
        with open(f"/proc/self/fdinfo/{fd}", encoding="ascii", errors="replace") as file:
            if any(line.startswith("Pid:") for line in file):
                return fd
        os.close(fd)
        raise self.wrong("the file descriptor is of no process")

    def close(self) -> None:
        for fd in self._fds:
            os.close(fd)
        self._fds = []
