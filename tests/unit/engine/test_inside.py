"""A thread that is caught in the driver leaves it before anything is saved; one that sleeps may stay."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from diapause.runtime.engine.hold import Hold
from diapause.runtime.engine.inside import Inside
from diapause.runtime.linux import proc
from diapause.runtime.linux.deadline import Deadline
from diapause.runtime.linux.events import Events

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")

# A second copy of libc plays the driver: nothing else in the process runs its code.
PROGRAM = """
import ctypes, sys, threading
driver = ctypes.CDLL(sys.argv[1])
memory = ctypes.create_string_buffer(64 << 10)
calls = {
    "busy": lambda: driver.memset(memory, 1, len(memory)),
    "asleep": lambda: driver.pause(),
    "elsewhere": lambda: sum(range(1000)),
}
def loop(call):
    while True:
        call()
for name in sys.argv[2:]:
    threading.Thread(target=loop, args=(calls[name],), daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
"""


@pytest.fixture
def hold() -> Iterator[Hold]:
    events = Events([signal.SIGCHLD])
    held = Hold(events)
    yield held
    held.close()
    events.close()
    try:
        while os.waitpid(-1, os.WNOHANG | 0x40000000)[0]:  # __WALL: threads that died while they were held
            pass
    except ChildProcessError:
        pass


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., int]]:
    driver = tmp_path / "libcuda.so.1"
    lines = Path("/proc/self/maps").read_text().splitlines()
    libc = next(line.split()[-1] for line in lines if "libc.so" in line)
    shutil.copy(libc, driver)
    started: list[subprocess.Popen[str]] = []

    def run(*threads: str) -> int:
        argv = [sys.executable, "-ISc", PROGRAM, str(driver), *threads]
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.05)
        return process.pid

    yield run
    for process in started:
        process.kill()
        process.communicate()


def seized(hold: Hold, pid: int) -> Inside:
    hold.seize([pid], Deadline.after(5))
    hold.settle(Deadline.after(5))
    return Inside(hold, hold.threads)


def caught(hold: Hold, pid: int) -> Inside:
    """Held at a moment when a thread is inside."""
    for _ in range(1000):
        inside = seized(hold, pid)
        if inside.threads:
            return inside
        hold.release()
        time.sleep(0.001)
    raise AssertionError("never inside")


def executes_driver(pid: int, tid: int) -> bool:
    at = int(Path(f"/proc/{pid}/task/{tid}/syscall").read_text().split()[-1], 16)
    return any(low <= at < high for low, high in proc.executable_mappings(pid, ("libcuda.so",)))


def test_a_thread_that_works_inside_comes_out(start: Callable[..., int], hold: Hold) -> None:
    inside = caught(hold, start("busy", "elsewhere"))
    assert len(inside.threads) == 1
    assert inside.leave(Deadline.after(10)) == []
    assert not any(executes_driver(*thread) for thread in hold.threads)


def test_a_thread_that_sleeps_inside_stays(start: Callable[..., int], hold: Hold) -> None:
    inside = caught(hold, start("asleep"))
    begun = time.monotonic()
    assert inside.leave(Deadline.after(10)) == []
    assert len(inside.threads) == 1
    assert time.monotonic() - begun < 5


def test_nobody_inside_needs_nothing(start: Callable[..., int], hold: Hold) -> None:
    inside = seized(hold, start("elsewhere"))
    assert inside.threads == []
    assert inside.leave(Deadline.after(0)) == []


def test_the_deadline_names_who_is_left(start: Callable[..., int], hold: Hold) -> None:
    inside = caught(hold, start("busy"))
    begun = time.monotonic()
    assert inside.leave(Deadline.after(0)) == inside.threads  # none, if the first moment was enough
    assert time.monotonic() - begun < 5


def test_a_thread_that_ends_is_no_trouble(start: Callable[..., int], hold: Hold) -> None:
    pid = start("busy")
    inside = caught(hold, pid)
    subprocess.run(["kill", "-9", str(pid)], check=True)
    assert inside.leave(Deadline.after(10)) == []
