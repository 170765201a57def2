"""Starting a program: explicit environment, nothing inherited by accident, ended with its parent."""

from __future__ import annotations

import os

from diapause.runtime.linux import libc, pidfd, signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from diapause.runtime.linux.deadline import Deadline

_LIMIT = 64 << 20  # bytes of output that any program of ours may have a reason for
_TAIL = 4096  # bytes of a failed program's stderr that the exception may carry


class Child:
    """A started program; `pidfd` becomes readable when it ends. Owned by whoever started it."""

    __slots__ = ("argv", "pid", "pidfd", "status")

    def __init__(self, argv: Sequence[str], pid: int) -> None:
        self.argv = argv
        self.pid = pid
        self.pidfd = pidfd.pidfd_open(pid)
        self.status: int | None = None  # as a shell would give it, None while it runs

    def poll(self) -> int | None:
        """The exit status if the program has ended: 128 + signal for one that was killed."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                code = os.waitstatus_to_exitcode(status)
                self.status = code if code >= 0 else 128 - code
        return self.status

    def kill(self, number: int = signals.SIGKILL) -> None:
        if self.poll() is None:
            pidfd.pidfd_send_signal(self.pidfd, number)

    def close(self) -> None:
        """Kill it if it still runs, and reap it."""
        self.kill()
        if self.status is None:
            os.waitpid(self.pid, 0)  # bounded by the kernel: it was sent SIGKILL
            self.status = 128 + signals.SIGKILL
        os.close(self.pidfd)


def spawn(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    stdin: int | None = None,
    stdout: int | None = None,
    stderr: int | None = None,
    keep_fds: bool = False,
    outlive: bool = False,
    oom_score_adj: str = "",
    sigmask: Collection[int] | None = None,
) -> Child:
    """Start `argv[0]` (an absolute path) with SIGKILL as its parent-death signal, unless it may `outlive` us.

    A stdio fd of None means /dev/null; pass 0, 1, 2 to share ours. `keep_fds` leaves the inheritable
    fds of this process open in the program. `sigmask` are the signals that it starts with blocked, by
    default those of this process; `oom_score_adj` is set where it is given. Raises OSError with the
    program's path when it cannot be executed.
    """
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    failed, report = os.pipe2(os.O_CLOEXEC)
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            if not outlive:
                libc.prctl(libc.PR_SET_PDEATHSIG, signals.SIGKILL)
                if os.getppid() != parent:
                    os._exit(127)  # it died before the signal was set
            for number, fd in enumerate((stdin, stdout, stderr)):
                _place(null if fd is None else fd, number)
            if not keep_fds:
                os.closerange(3, report)
                os.closerange(report + 1, 1 << 16)
            if oom_score_adj:
                _write("/proc/self/oom_score_adj", oom_score_adj)
            if sigmask is not None:
                signals.pthread_sigmask(signals.SIG_SETMASK, sigmask)
            for number in (signals.SIGPIPE, signals.SIGXFSZ):  # Python ignores them; that would be inherited
                signals.signal(number, signals.SIG_DFL)
            os.execve(argv[0], list(argv), env)
        except OSError as error:
            os.write(report, str(error.errno).encode())
        finally:
            os._exit(127)
    os.close(report)
    os.close(null)
    with os.fdopen(failed, "rb") as pipe:
        text = pipe.read()  # ends at the exec, by close-on-exec
    if text:
        os.waitpid(pid, 0)
        raise OSError(int(text), os.strerror(int(text)), argv[0])
    return Child(argv, pid)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _place(fd: int, number: int) -> None:
    """Make `fd` the stdio fd `number`. Callers pass either that very number or one above 2."""
    if fd == number:
        os.set_inheritable(fd, True)
    else:
        os.dup2(fd, number)


class Result:
    """What a finished program left."""

    __slots__ = ("status", "stderr", "stdout")

    def __init__(self, status: int, stdout: str, stderr: str) -> None:
        self.status = status
        self.stdout = stdout
        self.stderr = stderr


class ProgramError(Exception):
    """A program that could not do its work; `result` has its last lines of stderr."""

    def __init__(self, argv: Sequence[str], result: Result) -> None:
        self.argv = argv
        self.result = result
        last = result.stderr.strip().rpartition("\n")[2]
        super().__init__(f"{argv[0]} ended with status {result.status}" + (f": {last}" if last else ""))


def run(argv: Sequence[str], *, deadline: Deadline, env: Mapping[str, str], check: bool = True) -> Result:
    """Run a program to its end and return its output.

    Raises TimeoutError (the program is killed), OSError when it cannot be started, and with `check`
    ProgramError for a status other than 0.
    """
    import select

    out_read, out_write = os.pipe2(os.O_CLOEXEC)
    err_read, err_write = os.pipe2(os.O_CLOEXEC)
    try:
        child = spawn(argv, env=env, stdout=out_write, stderr=err_write)
    finally:
        os.close(out_write)
        os.close(err_write)
    output = {out_read: b"", err_read: b""}
    poll = select.poll()
    for fd in output:
        poll.register(fd, select.POLLIN)
    pending = set(output)
    try:
        while pending:
            ready = poll.poll(deadline.poll_ms())
            if not ready and deadline.expired:
                raise TimeoutError(110, "the program did not end in time", argv[0])
            for fd, _ in ready:
                data = os.read(fd, 65536)
                output[fd] += data
                if len(output[fd]) > _LIMIT:
                    raise OSError(27, "the program prints too much", argv[0])
                if not data:
                    poll.unregister(fd)
                    pending.discard(fd)
        poll.register(child.pidfd, select.POLLIN)
        if not poll.poll(deadline.poll_ms()):
            raise TimeoutError(110, "the program did not end in time", argv[0])
        status = child.poll()
    finally:
        child.close()
        for fd in output:
            os.close(fd)
    result = Result(
        127 if status is None else status,
        output[out_read].decode(errors="replace"),
        output[err_read][-_TAIL:].decode(errors="replace"),
    )
    if check and result.status:
        raise ProgramError(argv, result)
    return result
