"""Asking the library inside a process, with a deadline on everything."""

import array
import os
import select
import socket
import stat
import struct
from collections.abc import Mapping
from types import TracebackType

from diapause.runtime import errors
from diapause.runtime.engine.control.frame import FDS, LIMIT, Frame, FrameError, Hello, Op, Status
from diapause.runtime.engine.control.page import MAJOR, OLDEST, ControlPage, Counter, parse_counters
from diapause.runtime.engine.control.search import locate
from diapause.runtime.linux.deadline import Deadline
from diapause.runtime.linux.pidfd import pidfd_getfd

_STALE = 256  # frames for somebody else that may lie before our answer
_NOWAIT = socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL  # not O_NONBLOCK: the process shares that flag


class Channel:
    """A connection to the library in one process; owns its end of the socket pair.

    Close it before the process is dumped, and connect anew after the restore.
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

    def call(self, op: Op, deadline: Deadline, payload: bytes = b"") -> bytes:
        """The payload of the answer to one request.

        Raises Unavailable when none comes in time, Internal for one that makes no sense, and
        FailedPrecondition when the library speaks no version that we do.
        """
        self._seq += 1
        request = Frame(op=op, epoch=self._epoch, seq=self._seq, payload=payload, major=self._major)
        self._send(request, deadline)
        answer = self._answer(request, deadline)
        if answer.status == Status.BAD_MAJOR and OLDEST <= answer.major < self._major:
            self._major = answer.major  # an older library: from now on in its words
            return self.call(op, deadline, payload)
        if answer.status == Status.BAD_MAJOR:
            raise version_mismatch(self.pid, answer.major)
        if answer.status != Status.OK:
            raise self._nonsense(op, FrameError(f"status {answer.status}"))
        return answer.payload

    def _send(self, request: Frame, deadline: Deadline) -> None:
        while True:
            try:
                self._end.send(request.encode(), _NOWAIT)
                return
            except BlockingIOError:
                self._wait(select.POLLOUT, request, deadline)
            except OSError as error:
                raise self._nonsense(request.op, error) from error

    def _answer(self, request: Frame, deadline: Deadline) -> Frame:
        """The next frame that answers `request`; older ones were for a tool that did not wait."""
        for _ in range(_STALE):
            self._wait(select.POLLIN, request, deadline)
            try:
                frame = self._receive()
            except BlockingIOError:
                continue
            except (FrameError, OSError) as error:
                raise self._nonsense(request.op, error) from error
            if frame.answers(request):
                return frame
        raise self._nonsense(request.op, FrameError(f"{_STALE} frames that nobody asked for"))

    def _receive(self) -> Frame:
        message, ancillary, flags, _ = self._end.recvmsg(
            LIMIT, socket.CMSG_SPACE(FDS * 4), _NOWAIT | socket.MSG_CMSG_CLOEXEC
        )
        if gifts := _close_fds(ancillary):
            raise FrameError(f"{gifts} file descriptors that nobody asked for")
        if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
            raise FrameError("a message longer than a frame may be")
        return Frame.decode(message)

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


def connect(pid: int, pidfd: int, deadline: Deadline) -> Channel:
    """A channel to the library in process `pid`, which the caller holds by `pidfd` and keeps.

    Raises NotFound for a process without a control page of its own, FailedPrecondition when its
    library is of another version or has stopped to answer, Internal when what is there is no library
    of ours, Unavailable when it does not answer in time.
    """
    page = locate(pid, pidfd)
    if page is None:
        raise errors.NotFound(
            "control-page-missing",
            f"connect to process {pid}",
            "it holds no control page of its own",
            "a process is managed when our library is its libcuda and cuInit has succeeded",
        )
    if not OLDEST <= page.major <= MAJOR:
        raise version_mismatch(pid, page.major)
    channel = Channel(pid, _take(pid, pidfd, page))
    try:
        if channel.hello(deadline).pid != page.pid:
            raise _impostor(pid, "it answers for another process")
    except BaseException:
        channel.close()
        raise
    return channel


def _take(pid: int, pidfd: int, page: ControlPage) -> socket.socket:
    """The tool's end, if the number in the page really leads to one."""
    if page.peer < 0:
        raise errors.FailedPrecondition(
            "control-closed",
            f"connect to process {pid}",
            "its control thread has ended: the program closed file descriptors that are not its own",
            "a program that closes all descriptors has to do so before it calls cuInit",
        )
    try:
        fd = pidfd_getfd(pidfd, page.peer)
    except OSError as error:
        if isinstance(error, PermissionError | ProcessLookupError):
            raise
        raise _impostor(pid, f"fd {page.peer}: {error.strerror}") from error
    if not stat.S_ISSOCK(os.fstat(fd).st_mode):
        os.close(fd)
        raise _impostor(pid, f"fd {page.peer} is no socket")
    end = socket.socket(fileno=fd)
    try:
        wrong = _wrong_socket(end, pid)
    except OSError as error:
        wrong = f"{error.strerror}"
    if wrong:
        end.close()
        raise _impostor(pid, f"fd {page.peer} is {wrong}")
    return end


def _wrong_socket(end: socket.socket, pid: int) -> str:
    """What makes it another socket than one end of a pair that the process made itself."""
    if end.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN) != socket.AF_UNIX:
        return "no unix socket"
    if end.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) != socket.SOCK_SEQPACKET:
        return "no seqpacket socket"
    if end.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        return "a listening socket"
    credentials = end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    peer: int = struct.unpack("iII", credentials)[0]
    return "" if peer == pid else f"connected to process {peer}"


def _close_fds(ancillary: list[tuple[int, int, bytes]]) -> int:
    """Close what came along with a message; how many it was."""
    fds = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(data[: len(data) // fds.itemsize * fds.itemsize])
    for fd in fds:
        os.close(fd)
    return len(fds)


def version_mismatch(pid: int, major: int) -> errors.FailedPrecondition:
    return errors.FailedPrecondition(
        "control-version",
        f"connect to process {pid}",
        f"its library speaks version {major}, this tool {OLDEST} to {MAJOR}",
        "use the tools of the release that started it, or restart the container",
    )


def _impostor(pid: int, why: str) -> errors.Internal:
    return errors.Internal("control-impostor", f"connect to process {pid}", why)
