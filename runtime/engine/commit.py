"""The commit, as CRIU's `post-dump` action asks for it: the last moment at which the dump may fail.

The image is written, the container still exists. The action script connects, sends the action's name and
waits for "0\\n"; anything else makes CRIU give up, and the container lives on.
"""

from __future__ import annotations

import _socket  # the C half: `socket` makes an enumeration of every constant, which takes milliseconds
import os
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from diapause.runtime.engine.watch import Watch

ACTION = b"post-dump\n"
_PATIENCE = 5000  # milliseconds for the script to say what it wants


class CommitServer:
    """Listens at commit.sock of the container and commits once, however often it is asked."""

    def __init__(self, path: str, watch: Watch, commit: Callable[[], None]) -> None:
        self.done = False
        self.error: Exception | None = None
        self._path = path
        self._watch = watch
        self._commit = commit
        self._remove()
        self._socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
        self._socket.bind(path)
        self._socket.listen(4)
        watch.watch(self._socket.fileno(), self._accept)

    def _accept(self) -> None:
        peer, _ = self._socket._accept()  # type: ignore[attr-defined]
        try:
            if _readable(peer) and os.read(peer, len(ACTION)) == ACTION:
                os.write(peer, b"0\n" if self._once() else b"1\n")
        except OSError:
            pass  # it went away; CRIU takes that for a failure
        finally:
            os.close(peer)

    def _once(self) -> bool:
        if not self.done and self.error is None:
            try:
                self._commit()
                self.done = True
            except Exception as error:  # raised again by the dump, once runc has ended
                self.error = error
        return self.done

    def _remove(self) -> None:
        try:
            os.unlink(self._path)
        except FileNotFoundError:
            pass

    def close(self) -> None:
        self._watch.forget(self._socket.fileno())
        self._socket.close()
        self._remove()


def _readable(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(_PATIENCE))
