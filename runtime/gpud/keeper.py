"""Carrying what is held over the death of a controller.

The first process of a controller, the keeper, has no CUDA in it and little to do: it has a copy of every
file descriptor that its child, which does the work, holds, and starts another child when one dies. They
speak over a socket pair, in the words of wire.py; a message that the child has sent arrives, even if it
dies right away.
"""

from __future__ import annotations

import os
import socket

from diapause.runtime.gpud import log, wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from diapause.runtime.gpud.holdings import Held, Holdings, Key

_IDS = 1000  # in one message


class Keeper:
    """The child's side. Without an `end` nothing is kept."""

    def __init__(self, end: socket.socket | None = None) -> None:
        self._end = end

    def hold(self, container: str, batch: Sequence[Held]) -> None:
        for at in range(0, len(batch), wire.BATCH):
            part = batch[at : at + wire.BATCH]
            entries = [held.values() for held in part]
            self._send({"op": "hold", "container": container, "held": entries}, [h.fd for h in part])

    def watch(self, container: str, process: int, pidfd: int) -> None:
        self._send({"op": "watch", "container": container, "process": process}, [pidfd])

    def drop(self, container: str, keys: Sequence[Key], *, process: int = 0) -> None:
        """Let go of allocations, or of the pidfd of a process."""
        if process:
            self._send({"op": "unwatch", "container": container, "process": process})
        for at in range(0, len(keys), _IDS):
            part = [list(key) for key in keys[at : at + _IDS]]
            self._send({"op": "drop", "container": container, "keys": part})

    def _send(self, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
        if self._end is None:
            return
        try:
            wire.send(self._end, message, fds)
        except OSError as e:
            self._end = None  # it was killed: go on as well as we can
            log.write("warning", f"the keeper is gone: {e}; what is held ends with this process")


class Kept:
    """The keeper's own record: the same as the child's holdings, with fds of its own."""

    def __init__(self) -> None:
        self.held: dict[str, dict[Key, tuple[list[int], int]]] = {}  # entry and fd, by container and key
        self.pidfds: dict[str, dict[int, int]] = {}

    def __bool__(self) -> bool:
        return any(self.held.values())

    def apply(self, message: dict[str, Any], fds: list[int]) -> None:
        """What the child says. It is ours, so it makes sense."""
        container = message["container"]
        match message["op"]:
            case "hold":
                there = self.held.setdefault(container, {})
                for entry, fd in zip(message["held"], fds, strict=True):
                    self._close(there.pop((entry[0], entry[1]), None))
                    there[entry[0], entry[1]] = (entry, fd)
            case "drop":
                for process, number in message["keys"]:
                    self._close(self.held.get(container, {}).pop((process, number), None))
            case "watch":
                self._unwatch(container, message["process"])
                self.pidfds.setdefault(container, {})[message["process"]] = fds[0]
            case "unwatch":
                self._unwatch(container, message["process"])

    def _close(self, old: tuple[list[int], int] | None) -> None:
        if old is not None:
            os.close(old[1])

    def _unwatch(self, container: str, process: int) -> None:
        pidfd = self.pidfds.get(container, {}).pop(process, None)
        if pidfd is not None:
            os.close(pidfd)

    def fill(self, holdings: Holdings) -> None:
        """In a new child: make the fds, which were inherited, its own."""
        from diapause.runtime.gpud.holdings import Held

        for name, entries in self.held.items():
            container = holdings.get(name)
            for entry, fd in entries.values():
                held = Held(entry, fd)
                container.held[held.key] = held
            container.pidfds.update(self.pidfds.get(name, {}))


def drain(end: socket.socket, kept: Kept) -> bool:
    """Apply one message of the child; False when it has closed its end."""
    received = wire.receive(end)
    if received is None:
        return False
    kept.apply(*received)
    return True
