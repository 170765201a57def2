"""A process is its number and its start time."""

import os
import subprocess
import sys

import pytest

from diapause.runtime.linux import pid


def test_a_running_process_is_alive() -> None:
    assert pid.is_alive(os.getpid(), pid.start_time(os.getpid()))


def test_another_one_with_its_number_is_not() -> None:
    assert not pid.is_alive(os.getpid(), pid.start_time(os.getpid()) + 1)


def test_a_zombie_is_not() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        start = pid.start_time(child.pid)
        assert pid.is_alive(child.pid, start)
        assert child.stdin is not None
        child.stdin.close()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not pid.is_alive(child.pid, start)


def test_one_that_never_was_has_no_start() -> None:
    assert not pid.is_alive(2**22 + 1, 1)
    with pytest.raises(FileNotFoundError):
        pid.start_time(2**22 + 1)
