"""The controllers of the GPUs that a container uses."""

from __future__ import annotations

from diapause.runtime.errors import DiapauseError, Unavailable
from diapause.runtime.gpud import client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from diapause.runtime.gpud.client import Controller
    from diapause.runtime.linux.deadline import Deadline

GONE = "gpud-gone"  # the code of an error: it ended, and with it what it held


class Controllers:
    """Owns the connections. All that is done is done for one container, by its key."""

    def __init__(self, container: str, libcuda: str) -> None:
        self.container = container
        self._libcuda = libcuda
        self._open: dict[str, Controller] = {}

    def get(self, gpu: str, deadline: Deadline) -> Controller:
        """The controller of a GPU, started if need be; connected anew if it has gone meanwhile."""
        if (known := self._open.get(gpu)) is not None:
            try:
                known.hello(deadline)
                return known
            except Unavailable as error:
                if error.code != GONE:
                    raise
                self._open.pop(gpu).close()
        self._open[gpu] = client.connect(gpu, self._libcuda, deadline)
        return self._open[gpu]

    def find(self, gpu: str) -> None:
        """Connect to the controller of a GPU if it runs: another one would hold nothing."""
        if gpu not in self._open and (controller := client.running(gpu)) is not None:
            self._open[gpu] = controller

    def forget(self, deadline: Deadline) -> list[str]:
        """Have all that are connected let go of the container's memory; what failed, in words.

        One that has gone holds nothing any more.
        """
        failures = []
        for gpu in list(self._open):
            try:
                self._open[gpu].forget(self.container, deadline)
            except DiapauseError as error:
                if error.code != GONE:
                    failures.append(str(error))
                self._open.pop(gpu).close()
        return failures

    def __iter__(self) -> Iterator[Controller]:
        return iter(list(self._open.values()))

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].close()


def forget(gpus: list[str], container: str, deadline: Deadline) -> None:
    """Let go of what a dead engine left with the controllers; those that do not run hold nothing."""
    for gpu in gpus:
        if (controller := client.running(gpu)) is not None:
            try:
                controller.forget(container, deadline)
            except Unavailable as error:
                if error.code != GONE:
                    raise
            finally:
                controller.close()
