"""Asking a program for its version while other work goes on."""

from __future__ import annotations

import os
import select

from diapause.runtime.linux.spawn import spawn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from diapause.runtime.linux.deadline import Deadline

_LIMIT = 1 << 16  # bytes


class Probe:
    """A program that prints something short and ends."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], sigmask: Collection[int]) -> None:
        self._pipe, stdout = os.pipe2(os.O_CLOEXEC)
        try:
            self._child = spawn(argv, env=env, stdout=stdout, stderr=stdout, sigmask=sigmask)
        finally:
            os.close(stdout)

    def output(self, deadline: Deadline) -> str:
        """Everything it printed, or what came until the deadline or the limit."""
        data = b""
        poll = select.poll()
        poll.register(self._pipe, select.POLLIN)
        while len(data) < _LIMIT and poll.poll(deadline.poll_ms()):  # a program may print for ever
            chunk = os.read(self._pipe, 1 << 16)
            if not chunk:
                break
            data += chunk
        os.close(self._pipe)
        self._child.close()
        return data.decode(errors="replace")
