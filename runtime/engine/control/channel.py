"""Asking the library inside a process, with a deadline on everything."""

import os
import select
import socket
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import NoReturn

from diapause.runtime import errors
from diapause.runtime.engine.control import payload as layout
from diapause.runtime.engine.control.frame import Frame, FrameError, Hello, Op, Status
from diapause.runtime.engine.control.message import close_fds, receive, send
from diapause.runtime.engine.control.page import MAJOR, OLDEST, Counter, parse_counters
from diapause.runtime.linux.deadline import Deadline

_STALE = 256  # frames for somebody else that may lie before our answer
_OUT_OF_MEMORY = 2  # CUresult


class Channel:
    """A connection to the library in one process; owns its end of the socket pair.

    Close it before the process is dumped, and connect anew after the restore. Every request may be
    made again after an error. All of them raise Unavailable when no answer comes in time, Internal
    for one that makes no sense, and FailedPrecondition when the library speaks no version that we do.
    """

    def __init__(self, pid: int, end: socket.socket) -> None:
        self.pid = pid
        self._end = end
        self._epoch = int.from_bytes(os.urandom(4), "little") | 1
        self._seq = 0
        self._major = MAJOR

    def hello(self, deadline: Deadline) -> Hello:
        """Who answers; begins the use of the channel, which connect() has done already."""
        payload = self.call(Op.HELLO, deadline)
        try:
            return Hello.parse(payload)
        except FrameError as error:
            raise self._nonsense(Op.HELLO, error) from error

    def counters(self, deadline: Deadline) -> Mapping[Counter, int]:
        """The counters that both sides know."""
        return parse_counters(self.call(Op.COUNTERS, deadline))

    def quiesce(self, deadline: Deadline, *, timeout: float) -> layout.Quiet:
        """Close the gates and wait until no call is inside and every context is idle.

        Raises Unavailable after `timeout` seconds, with the gates open again. Done already: the same.
        """
        payload = self.call(Op.QUIESCE, deadline, layout.quiesce(round(timeout * 1000)))
        try:
            return layout.Quiet.parse(payload)
        except FrameError as error:
            raise self._nonsense(Op.QUIESCE, error) from error

    def memory(self, deadline: Deadline) -> tuple[layout.Memory, ...]:
        """Every allocation, by rising id; it stands still while the gates are closed."""
        found: list[layout.Memory] = []
        while len(found) <= layout.ALLOCATIONS:
            first = found[-1].id + 1 if found else 1
            payload = self.call(Op.MEMORY, deadline, layout.ids([first]))
            try:
                more = layout.parse_memory(payload, first)
            except FrameError as error:
                raise self._nonsense(Op.MEMORY, error) from error
            if not more:
                return tuple(found)
            found += more
        raise self._nonsense(Op.MEMORY, FrameError(f"more than {layout.ALLOCATIONS} allocations"))

    def devices(self, deadline: Deadline) -> tuple[layout.Device, ...]:
        """The devices that the process has used."""
        payload = self.call(Op.DEVICES, deadline)
        try:
            return layout.parse_devices(payload)
        except FrameError as error:
            raise self._nonsense(Op.DEVICES, error) from error

    def stats(self, deadline: Deadline) -> layout.Stats:
        """How much memory took which way; can be asked at any time."""
        payload = self.call(Op.STATS, deadline)
        try:
            return layout.Stats.parse(payload)
        except FrameError as error:
            raise self._nonsense(Op.STATS, error) from error

    def export(self, ids: Sequence[int], deadline: Deadline) -> dict[int, int]:
        """A close-on-exec fd for each of these allocations; the caller owns them.

        The gates are closed. Raises FailedPrecondition for allocations that are away, imported or
        unknown, before any fd came; on every error no fd stays open.
        """
        if len(set(ids)) < len(ids):
            raise ValueError(f"allocations named twice: {list(ids)}")
        with ExitStack() as undo:
            fds: dict[int, int] = {}
            for at in range(0, len(ids), layout.IDS):
                names = ids[at : at + layout.IDS]
                answer, came = self._ask(Op.EXPORT, deadline, layout.ids(names), want=len(names))
                undo.callback(close_fds, came)
                try:
                    layout.check_ids(answer.payload, names)
                except FrameError as error:
                    raise self._nonsense(Op.EXPORT, error) from error
                fds.update(zip(names, came, strict=True))
            undo.pop_all()
            return fds

    def drop(self, deadline: Deadline) -> layout.Dropped:
        """Unmap and release everything that is attached and not foreign; the gates are closed.

        Says what is away at the moment. Whoever exported has to hold the fds, or the memory is lost.
        """
        payload = self.call(Op.DROP, deadline)
        try:
            return layout.Dropped.parse(payload)
        except FrameError as error:
            raise self._nonsense(Op.DROP, error) from error

    def attach(self, fds: Mapping[int, int], deadline: Deadline) -> None:
        """Give these allocations their memory back, each from its fd; the fds stay the caller's.

        What is attached already stays as it is. Raises Internal if the driver refuses one: those
        before it are attached.
        """
        names = sorted(fds)
        for at in range(0, len(names), layout.IDS):
            some = names[at : at + layout.IDS]
            self._ask(Op.ATTACH, deadline, layout.ids(some), fds=[fds[name] for name in some])

    def open(self, deadline: Deadline) -> None:
        """Open the gates. Raises FailedPrecondition while something is not attached."""
        self.call(Op.OPEN, deadline)

    def rehome(self, ids: Sequence[int], deadline: Deadline) -> None:
        """Move allocations that were attached into memory of the process's own; gates closed.

        They can be exported again afterwards. Raises Unavailable when the device has no room for a
        second copy of one of them.
        """
        for at in range(0, len(ids), layout.IDS):
            self.call(Op.REHOME, deadline, layout.ids(ids[at : at + layout.IDS]))

    def call(self, op: Op, deadline: Deadline, payload: bytes = b"") -> bytes:
        """The payload of the answer to one request without file descriptors."""
        return self._ask(op, deadline, payload)[0].payload

    def _ask(
        self, op: Op, deadline: Deadline, payload: bytes, fds: Sequence[int] = (), want: int = 0
    ) -> tuple[Frame, list[int]]:
        """The answer, and exactly `want` fds with it, which the caller owns."""
        self._seq += 1
        request = Frame(
            op=op, epoch=self._epoch, seq=self._seq, payload=payload, major=self._major, nfds=len(fds)
        )
        self._send(request, fds, deadline)
        answer, came = self._answer(request, deadline)
        if answer.status == Status.BAD_MAJOR and OLDEST <= answer.major < self._major and not came:
            self._major = answer.major  # an older library: from now on in its words
            return self._ask(op, deadline, payload, fds, want)
        if len(came) != (want if answer.status == Status.OK else 0):
            close_fds(came)
            raise self._nonsense(op, FrameError(f"{len(came)} file descriptors instead of {want}"))
        if answer.status != Status.OK:
            self._refused(op, answer)
        return answer, came

    def _send(self, request: Frame, fds: Sequence[int], deadline: Deadline) -> None:
        while True:
            try:
                send(self._end, request, fds)
                return
            except BlockingIOError:
                self._wait(select.POLLOUT, request, deadline)
            except OSError as error:
                raise self._nonsense(request.op, error) from error

    def _answer(self, request: Frame, deadline: Deadline) -> tuple[Frame, list[int]]:
        """The next frame that answers `request`; older ones were for a tool that did not wait."""
        for _ in range(_STALE):
            self._wait(select.POLLIN, request, deadline)
            try:
                frame, fds = receive(self._end)
            except BlockingIOError:
                continue
            except (FrameError, OSError) as error:
                raise self._nonsense(request.op, error) from error
            if frame.answers(request):
                return frame, fds
            close_fds(fds)
        raise self._nonsense(request.op, FrameError(f"{_STALE} frames that nobody asked for"))

    def _wait(self, event: int, request: Frame, deadline: Deadline) -> None:
        poll = select.poll()
        poll.register(self._end, event)
        if deadline.expired or not poll.poll(deadline.poll_ms()):
            raise errors.Unavailable(
                "control-no-answer",
                self._what(request.op),
                "no answer before the deadline",
                "a frozen or stopped process cannot answer: thaw it first",
            )

    def _refused(self, op: Op, answer: Frame) -> NoReturn:
        """Raise what a status other than OK means."""
        try:
            if answer.status == Status.BUSY:
                raise self._busy(op, layout.Quiet.parse(answer.payload))
            if answer.status == Status.GPU:
                raise self._gpu(op, layout.Failure.parse(answer.payload))
        except FrameError as error:
            raise self._nonsense(op, error) from error
        if answer.status == Status.BAD_MAJOR:
            raise version_mismatch(self.pid, answer.major)
        if answer.status == Status.BAD_OP and layout.minor_of(op) > 0:
            raise errors.FailedPrecondition(
                "control-too-old",
                self._what(op),
                f"its library is of version {answer.major}.{answer.minor} and does not know that",
                "restart the container with the library of this release, or use the engine driver",
            )
        if answer.status == Status.STATE:
            raise errors.FailedPrecondition(
                "control-state",
                self._what(op),
                "its gates, or the allocations that were named, are not in the state for that",
                "another operation works on this process, or its last one was left half done",
            )
        raise self._nonsense(op, FrameError(f"status {answer.status}"))

    def _busy(self, op: Op, quiet: layout.Quiet) -> errors.Unavailable:
        return errors.Unavailable(
            "control-busy",
            self._what(op),
            f"not quiet in time: {quiet.inside} threads inside calls, {quiet.captures} captures of graphs",
            "allow more time, or try again when the program is past it",
        )

    def _gpu(self, op: Op, failure: layout.Failure) -> errors.DiapauseError:
        what = f"allocation {failure.id}: CUresult {failure.result}"
        if failure.result == _OUT_OF_MEMORY:
            return errors.Unavailable(
                "control-gpu-memory", self._what(op), f"{what}, out of memory", "free memory of this GPU"
            )
        return errors.Internal("control-gpu-failed", self._what(op), what)

    def _nonsense(self, op: int, error: Exception) -> errors.Internal:
        return errors.Internal("control-bad-answer", self._what(op), f"{error}")

    def _what(self, op: int) -> str:
        return f"ask process {self.pid} for {Op(op).name.lower()}"

    def close(self) -> None:
        self._end.close()

    def __enter__(self) -> "Channel":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def version_mismatch(pid: int, major: int) -> errors.FailedPrecondition:
    return errors.FailedPrecondition(
        "control-version",
        f"connect to process {pid}",
        f"its library speaks version {major}, this tool {OLDEST} to {MAJOR}",
        "use the tools of the release that started it, or restart the container",
    )
