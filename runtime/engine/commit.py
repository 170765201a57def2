"""What CRIU asks by its action script: at `pre-dump` whether it may begin, at `post-dump` for the commit.

`pre-dump` comes before CRIU has touched any process. `post-dump` is the last moment at which the dump may
fail: the image is written, the container still exists. The script connects, sends the action's name and
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

BEGIN = b"pre-dump\n"
COMMIT = b"post-dump\n"
_PATIENCE = 5000  # milliseconds for the script to say what it wants


class CommitServer:
    """Listens at commit.sock of the container; commits once, however often it is asked."""

    def __init__(self, path: str, watch: Watch, commit: Callable[[], None]) -> None:
        self.done = False
        self.error: Exception | None = None
        self._path = path
        self._go: bool | None = None  # whether CRIU may begin, once that is known
        self._waiting: list[int] = []  # connections that ask for it
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
            action = os.read(peer, len(COMMIT)) if _readable(peer) else b""
        except OSError:
            action = b""
        if action == BEGIN and self._go is None:
            self._waiting.append(peer)
        elif action == BEGIN:
            _answer(peer, bool(self._go))
        elif action == COMMIT:
            _answer(peer, self._once())
        else:
            os.close(peer)

    def answer(self, *, go: bool) -> None:
        """Say whether CRIU may begin, to whoever asks or will."""
        self._go = go
        while self._waiting:
            _answer(self._waiting.pop(), go)

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

    def abandon(self) -> None:
        """Let a CRIU that asks after the end hear no: nobody answers at the socket that stays."""
        self._path = ""

    def close(self) -> None:
        self.answer(go=False)
        self._watch.forget(self._socket.fileno())
        self._socket.close()
        if self._path:
            self._remove()


def _answer(peer: int, yes: bool) -> None:
    try:
        os.write(peer, b"0\n" if yes else b"1\n")
    except OSError:
        pass  # it went away; CRIU takes that for a failure
    finally:
        os.close(peer)


def _readable(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(_PATIENCE))
