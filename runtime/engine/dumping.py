"""runc at its checkpoint: from its start, past CRIU's question whether it may begin, to its end."""

from __future__ import annotations

import os

from diapause.runtime.engine import criu, runc
from diapause.runtime.engine.commit import CommitServer
from diapause.runtime.linux.deadline import Deadline
from diapause.runtime.linux.spawn import spawn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from diapause.runtime.engine.request import CheckpointRequest
    from diapause.runtime.engine.watch import Watch

_STDERR_LIMIT = 1 << 20
_REFUSED = 10.0  # seconds for runc and CRIU to end that were told to
_TICK = 0.5  # seconds between two looks whether a cancelled dump has begun


class Dumping:
    """Owns runc, its stderr (kept back: the first line belongs to us if we fail) and the answers to CRIU.

    CRIU touches no process before go().
    """

    def __init__(
        self,
        request: CheckpointRequest,
        directory: str,
        *,
        env: Mapping[str, str],
        watch: Watch,
        commit: Callable[[], None],
    ) -> None:
        criu.write_config(request, directory, "checkpoint", env=env)
        self._watch = watch
        self._chunks: list[bytes] = []
        self.server = CommitServer(f"{directory}/commit.sock", watch, commit)
        self._pipe, stderr = os.pipe2(os.O_CLOEXEC)
        try:
            self._child = spawn(
                runc.argv(request, "checkpoint"),
                env=env, stdin=0, stdout=1, stderr=stderr, keep_fds=True,
                sigmask=watch.sigmask, oom_score_adj=watch.oom_score_adj,
            )  # fmt: skip
        except BaseException:
            os.close(self._pipe)
            self.server.close()
            raise
        finally:
            os.close(stderr)
        watch.watch(self._pipe, self._read)
        watch.watch(self._child.pidfd, lambda: None)

    def _read(self) -> None:
        data = os.read(self._pipe, 1 << 16)
        if not data:
            self._watch.forget(self._pipe)
        elif sum(map(len, self._chunks)) < _STDERR_LIMIT:
            self._chunks.append(data)

    @property
    def status(self) -> int | None:
        """The exit status of runc, None while it runs."""
        return self._child.poll()

    @property
    def stderr(self) -> str:
        return b"".join(self._chunks).decode(errors="replace")

    def go(self) -> None:
        """CRIU may take hold of the processes."""
        self.server.answer(go=True)

    def wait(self, given_up: Callable[[], bool]) -> None:
        """Until runc has ended, or is `given_up`.

        CRIU has its own timeouts, and killing it would leave the container full of its code.
        """
        self._watch.until(lambda: self.status is not None or given_up(), Deadline.never(), tick=_TICK)

    def refuse(self) -> None:
        """CRIU gives up without having touched a process; wait for the end of it, and close."""
        self.server.answer(go=False)
        if not self._watch.until(lambda: self.status is not None, Deadline.after(_REFUSED)):
            self.server.abandon()
        self.close()

    def close(self) -> None:
        """Kills a runc that still runs."""
        while self._watch.watches(self._pipe) and _readable(self._pipe):
            self._read()
        if self._watch.watches(self._pipe):
            self._watch.forget(self._pipe)
        os.close(self._pipe)
        self._watch.forget(self._child.pidfd)
        self._child.close()
        self.server.close()


def _readable(fd: int) -> bool:
    import select

    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))
