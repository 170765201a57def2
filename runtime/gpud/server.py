"""Serving: connections, requests, and what happens when nobody asks for anything."""

from __future__ import annotations

import os
import select
import socket
import struct
import threading
import time

from diapause.runtime import errors
from diapause.runtime.container import run_dir
from diapause.runtime.gpud import log, ops, wire
from diapause.runtime.gpud.arguments import Arguments
from diapause.runtime.gpud.job import as_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from diapause.runtime.gpud.holdings import Container
    from diapause.runtime.gpud.ops import Operations

_CONNECTIONS = 64
_LOST = 3  # exit status: the keeper starts another process
_SOON = 1.0  # seconds of idleness that a controller of no use has
_TICK = 1.0  # seconds between two looks at what has ended
_ABANDONED = 10.0  # seconds that a container's directory has to be gone: a restore makes it first


class Server:
    """Answers on a listening socket until it is idle for long enough, or was told to stop."""

    def __init__(
        self, listening: socket.socket, path: str, open_operations: Callable[[], Operations], *, idle: float
    ) -> None:
        """`path` is where clients find the socket. `idle`: seconds without a connection and with nothing
        held after which it ends, 0 for never.
        """
        self._path = path
        self._listening = listening
        self._open = open_operations
        self._operations: Operations | None = None
        self._failure: errors.DiapauseError | None = None
        self._idle = idle
        self._connections = 0
        self._lock = threading.Lock()
        self._last = time.monotonic()  # when something was going on
        self._missing: dict[str, float] = {}  # container: since when it has no directory
        self._wake, self._woken = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def serve(self) -> None:
        """Returns when it is over, with nothing held or running."""
        threading.Thread(target=self._prepare, name="prepare", daemon=True).start()
        while not self._over():
            self._look()

    def _prepare(self) -> None:
        """Open the GPU while the first client connects already; it is told when that fails."""
        try:
            self._operations = self._open()
        except BaseException as e:
            self._failure = as_error(e, "start of the controller")
            log.write("error", f"{self._failure}")
        os.write(self._woken, b"x")

    def _over(self) -> bool:
        operations = self._operations
        if operations and operations.stopping:
            return True
        if self._connections or (operations and any(not c.empty for c in operations.holdings.all())):
            self._last = time.monotonic()
        lost = self._failure or not os.path.exists(self._path)  # nobody can want it
        idle = _SOON if lost else self._idle
        return idle > 0 and time.monotonic() - self._last >= idle and not self._pending()

    def _pending(self) -> bool:
        return bool(select.select([self._listening], [], [], 0)[0])

    def _look(self) -> None:
        """Wait for something to happen, and see to it."""
        poll = select.poll()
        poll.register(self._listening, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        watched: dict[int, tuple[Container, int]] = {}
        for container in self._operations.holdings.all() if self._operations else []:
            if container.busy:
                continue  # later: its memory is being copied
            for process, pidfd in list(container.pidfds.items()):
                watched[pidfd] = (container, process)
                poll.register(pidfd, select.POLLIN)
        for fd, event in poll.poll(_TICK * 1000):
            if fd == self._listening.fileno():
                self._accept()
            elif fd == self._wake:
                os.read(self._wake, 4096)
            elif not event & select.POLLNVAL:
                self._ended(*watched[fd], fd)
        self._abandoned()

    def _ended(self, container: Container, process: int, pidfd: int) -> None:
        with container.lock:
            if container.busy or container.pidfds.get(process) != pidfd:
                return
            log.write("info", "process ended", container=container.name, process=process)
            self._activate()
            container.ended(process)
        if self._operations:
            self._operations.holdings.forget(container)

    def _abandoned(self) -> None:
        """Let go of containers that were deleted: poststop removes their directory, and tells nobody."""
        if not self._operations:
            return
        now = time.monotonic()
        there = self._operations.holdings.all()
        for container in there:
            if os.path.exists(f"{run_dir()}/c/{container.name}") or container.empty:
                self._missing.pop(container.name, None)
            elif now - self._missing.setdefault(container.name, now) > _ABANDONED and not container.busy:
                log.write("info", "container gone", container=container.name)
                self._activate()
                self._operations.let_go(container)

    def _activate(self) -> None:
        if self._operations:
            self._operations.activate()

    def _accept(self) -> None:
        try:
            end, _ = self._listening.accept()
        except OSError as e:
            log.write("warning", f"accept: {e}")
            return
        uid = struct.unpack("iII", end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1]
        with self._lock:
            welcome = uid in (0, os.geteuid()) and self._connections < _CONNECTIONS
            self._connections += welcome
        if not welcome:
            log.write("warning", "a connection was refused", uid=uid)
            end.close()
            return
        threading.Thread(target=self._converse, args=(end,), name="client", daemon=True).start()

    def _converse(self, end: socket.socket) -> None:
        try:
            with end:
                while self._answer(end):
                    pass
        except OSError as e:
            log.write("warning", f"a client is gone: {e}")
        finally:
            with self._lock:
                self._connections -= 1
                self._last = time.monotonic()
            os.write(self._woken, b"x")

    def _answer(self, end: socket.socket) -> bool:
        """One request; False when there will be no more."""
        try:
            received = wire.receive(end)
        except wire.WireError as e:
            wrong = errors.InvalidArgument("gpud-no-message", "message to the controller", f"{e}"[:200])
            wire.send(end, {"seq": 0, "error": wire.error_value(wrong)})
            return False
        if received is None:
            return False
        message, fds = received
        sequence = message.pop("seq", None)
        sequence = sequence if type(sequence) is int else 0
        answer, given = self._perform(message, fds)
        try:
            wire.send(end, {"seq": sequence, **answer}, given)
        finally:
            wire.close_all(given)
            if "error" in answer and self._operations and not self._operations.healthy:
                log.write("error", "the context on the GPU is lost: starting anew with what is held")
                os._exit(_LOST)
        return True

    def _perform(self, message: dict[str, object], fds: list[int]) -> ops.Answer:
        op = str(message.pop("op", ""))[:40]
        arguments = Arguments(op, message, fds)
        try:
            operations = self._ready()
            if op not in ops.NAMES:
                raise errors.InvalidArgument(
                    "gpud-unknown-op", f"request {op!r}", "there is none of this name",
                    "use the tools of the release that started the controller",
                )  # fmt: skip
            operations.activate()
            answer: ops.Answer = getattr(operations, op)(arguments)
            return answer
        except BaseException as e:
            error = as_error(e, f"request {op!r}")
            if error.code in ("gpud-bug", "gpud-driver"):
                log.write("error", f"{error}")
            return {"error": wire.error_value(error)}, []
        finally:
            arguments.close()

    def _ready(self) -> Operations:
        """The GPU opens in less than a second; a client waits for it."""
        while self._operations is None:
            if self._failure:
                raise self._failure
            time.sleep(0.005)
        return self._operations
