"""What /proc says about this very process and its children."""

import os
import signal
from pathlib import Path

import pytest

from diapause.runtime.linux import openat2, pidfd, proc

# Threads of the test process hold no lock that the forked children need.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


def test_this_process_is_described() -> None:
    pid = os.getpid()

    assert pid in proc.threads(pid)
    assert proc.start_time(pid) > 0
    assert proc.namespaced_pids(pid)[-1] > 0
    assert proc.comm(pid)
    assert proc.tracer(pid, pid) == 0
    assert proc.is_alive(pid, proc.start_time(pid))
    assert not proc.is_alive(pid, proc.start_time(pid) + 1)


def test_a_process_that_is_gone_has_no_threads() -> None:
    assert proc.threads(2**30) == []
    assert list(proc.fds(2**30)) == []
    assert not proc.is_alive(2**30, 1)


def test_a_zombie_has_ended() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    held = pidfd.pidfd_open(pid)
    start = proc.start_time(pid)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)

    assert proc.run_state(pid) == "Z"
    assert not proc.is_alive(pid, start)
    assert pidfd.exited(held)
    os.waitpid(pid, 0)
    with pytest.raises(ProcessLookupError):
        pidfd.pidfd_send_signal(held, signal.SIGTERM)
    os.close(held)


def test_a_stopped_process_is_seen() -> None:
    pid = os.fork()
    if pid == 0:
        signal.pause()
    os.kill(pid, signal.SIGSTOP)
    os.waitid(os.P_PID, pid, os.WSTOPPED)
    try:
        assert proc.group_stopped(pid)
        assert not proc.group_stopped(os.getpid())
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_character_devices_are_named_by_number(tmp_path: Path) -> None:
    device = os.open("/dev/null", os.O_RDONLY)
    plain = os.open(tmp_path / "plain", os.O_CREAT)
    found = {fd.number: fd.device for fd in proc.fds(os.getpid())}

    assert found[device] == os.makedev(1, 3)
    assert found[plain] == 0
    os.close(device)
    os.close(plain)


def test_majors_are_found_by_the_drivers_name() -> None:
    assert 1 in proc.character_majors("mem")
    assert proc.character_majors("no such driver") == set()


def test_an_fd_of_another_process_is_taken_over() -> None:
    read, write = os.pipe()
    taken = pidfd.pidfd_getfd(pidfd.pidfd_open(os.getpid()), write)

    os.write(taken, b"x")

    assert os.read(read, 1) == b"x"
    assert not os.get_inheritable(taken)


def test_a_path_does_not_leave_its_root(tmp_path: Path) -> None:
    (tmp_path / "root" / "etc").mkdir(parents=True)
    (tmp_path / "root" / "etc" / "inside").write_text("in")
    (tmp_path / "outside").write_text("out")
    (tmp_path / "root" / "up").symlink_to("../../outside")
    (tmp_path / "root" / "absolute").symlink_to("/etc/inside")
    root = os.open(tmp_path / "root", os.O_PATH | os.O_DIRECTORY)

    fd = openat2.openat2(root, "absolute", os.O_RDONLY)
    assert os.read(fd, 10) == b"in"
    with pytest.raises(FileNotFoundError):
        openat2.openat2(root, "up", os.O_RDONLY)
    with pytest.raises(OSError, match=r"(?i)cross-device"):
        openat2.openat2(root, "../outside", os.O_RDONLY, resolve=openat2.RESOLVE_BENEATH)
