"""Programs start with what they are given, and end with their parent."""

import os
import signal
import sys
from pathlib import Path

import pytest

from diapause.runtime.linux import spawn
from diapause.runtime.linux.deadline import Deadline

# Threads of the test process hold no lock that the forked children need.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")

SH = "/bin/sh"
ENV = {"PATH": "/usr/bin:/bin"}


def sh(script: str, *, seconds: float = 10, check: bool = True) -> spawn.Result:
    return spawn.run([SH, "-c", script], deadline=Deadline.after(seconds), env=ENV, check=check)


def test_output_and_status_come_back() -> None:
    result = sh("echo out; echo err >&2; exit 3", check=False)

    assert (result.status, result.stdout, result.stderr) == (3, "out\n", "err\n")


def test_the_error_has_the_last_line_of_stderr() -> None:
    with pytest.raises(spawn.ProgramError, match="ended with status 2: reason"):
        sh("echo first >&2; echo reason >&2; exit 2")


def test_a_program_that_takes_too_long_is_killed() -> None:
    with pytest.raises(TimeoutError):
        sh("exec sleep 60", seconds=0.1)


def test_a_missing_program_is_an_error_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        spawn.spawn([str(tmp_path / "none")], env=ENV)
    assert caught.value.filename == str(tmp_path / "none")


def test_only_what_is_asked_for_is_inherited() -> None:
    read, write = os.pipe()
    os.set_inheritable(write, True)
    try:
        kept = f"test -e /proc/self/fd/{write}"
        assert sh(kept, check=False).status == 1
        child = spawn.spawn([SH, "-c", kept], env=ENV, keep_fds=True)
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert child.poll() == 0
        child.close()
    finally:
        os.close(read)
        os.close(write)


def test_the_environment_is_the_given_one() -> None:
    os.environ["DIAPAUSE_TEST_SECRET"] = "x"

    assert "SECRET" not in sh("env").stdout


@pytest.mark.parametrize(("outlive", "left"), [(False, False), (True, True)])
def test_a_child_ends_with_its_parent_unless_it_may_outlive_it(outlive: bool, left: bool) -> None:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        child = spawn.spawn(["/bin/sleep", "60"], env=ENV, outlive=outlive)
        os.write(write, f"{child.pid}".encode())
        signal.pause()
    sleeper = os.pidfd_open(int(os.read(read, 32)))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    try:
        from select import POLLIN, poll

        waiting = poll()
        waiting.register(sleeper, POLLIN)
        assert bool(waiting.poll(300 if left else 5000)) is not left
    finally:
        if left:
            signal.pidfd_send_signal(sleeper, signal.SIGKILL)
        os.close(sleeper)


def test_blocked_signals_do_not_leak_into_a_program() -> None:
    old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        script = "print([l for l in open('/proc/self/status') if l.startswith('SigBlk')][0].split()[1])"
        read, write = os.pipe()
        child = spawn.spawn([sys.executable, "-ISc", script], env=ENV, stdout=write, sigmask=old)
        os.close(write)
        assert int(os.read(read, 64), 16) & (1 << (signal.SIGTERM - 1)) == 0
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        child.close()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)
