"""Held threads run nothing; what they were about to do, they do afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from diapause.runtime.engine.held import abandon
from diapause.runtime.engine.hold import Hold
from diapause.runtime.linux import proc
from diapause.runtime.linux.deadline import Deadline
from diapause.runtime.linux.events import Events

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")

# Four threads that count up in a shared file, and a handler that counts SIGCONT and SIGUSR1.
PROGRAM = """
import mmap, os, signal, struct, sys, threading, time
memory = mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 4096)
def add(slot):
    value = struct.unpack_from("Q", memory, 8 * slot)[0]
    struct.pack_into("Q", memory, 8 * slot, value + 1)
def count(slot):
    while True:
        add(slot)
        time.sleep(0.0005)
signal.signal(signal.SIGCONT, lambda *_: add(10))
signal.signal(signal.SIGUSR1, lambda *_: add(11))
for slot in range(1, 4):
    threading.Thread(target=count, args=(slot,), daemon=True).start()
count(0)
"""


class Counter:
    def __init__(self, path: Path) -> None:
        self._path = path
        path.write_bytes(bytes(4096))
        self.process = subprocess.Popen([sys.executable, "-ISc", PROGRAM, str(path)])
        self.pid = self.process.pid
        self.wait_for(lambda: all(self.values[:4]))

    @property
    def values(self) -> list[int]:
        data = self._path.read_bytes()
        return [int.from_bytes(data[at : at + 8], "little") for at in range(0, 128, 8)]

    def moves(self, seconds: float = 0.05) -> set[int]:
        """The slots that change in this time."""
        before = self.values
        time.sleep(seconds)
        return {slot for slot, value in enumerate(self.values) if value != before[slot]}

    @staticmethod
    def wait_for(done: object, seconds: float = 10) -> None:
        end = time.monotonic() + seconds
        while not done():  # type: ignore[operator]
            assert time.monotonic() < end
            time.sleep(0.002)


@pytest.fixture
def counter(tmp_path: Path) -> Iterator[Counter]:
    found = Counter(tmp_path / "counts")
    try:
        yield found
    finally:
        found.process.kill()
        found.process.wait()


@pytest.fixture
def events() -> Iterator[Events]:
    with Events([]) as events:
        yield events


def soon() -> Deadline:
    return Deadline.after(10)


def held(counter: Counter, events: Events) -> Hold:
    hold = Hold(events)
    while hold.seize([counter.pid], soon()):
        hold.settle(soon())
    return hold


def test_no_held_thread_runs_and_all_go_on_afterwards(counter: Counter, events: Events) -> None:
    hold = held(counter, events)
    assert sorted(hold.tids) == sorted(proc.threads(counter.pid))
    assert counter.moves() == set()

    hold.close()

    Counter.wait_for(lambda: counter.moves() >= {0, 1, 2, 3})


def test_one_thread_can_run_and_takes_no_signal(counter: Counter, events: Events) -> None:
    hold = held(counter, events)
    other = next(tid for tid in hold.tids if tid != counter.pid)
    hold.let_run([other])
    os.kill(counter.pid, signal.SIGUSR1)
    events.until(lambda: False, Deadline.after(0.05))
    moved = counter.moves()
    hold.halt(soon())

    assert len(moved) <= 1  # a thread of Python needs the lock that a held one may have
    assert counter.values[11] == 0
    assert counter.moves() == set()
    hold.close()
    Counter.wait_for(lambda: counter.values[11] == 1)


def test_a_signal_mask_survives(counter: Counter, events: Events) -> None:
    before = proc.status_field(f"/proc/{counter.pid}/status", "SigBlk")
    hold = held(counter, events)
    hold.let_run([counter.pid])
    assert proc.status_field(f"/proc/{counter.pid}/status", "SigBlk") != before
    hold.halt(soon())
    hold.arm()
    hold.disarm(soon())

    assert proc.status_field(f"/proc/{counter.pid}/status", "SigBlk") == before
    hold.close()


def test_arming_and_disarming_leaves_no_trace(counter: Counter, events: Events) -> None:
    hold = held(counter, events)
    hold.arm()
    hold.disarm(soon())
    hold.close()

    Counter.wait_for(lambda: counter.moves() >= {0, 1, 2, 3})
    assert counter.values[10] == 0  # no SIGCONT


def test_the_death_of_the_holder_leaves_armed_threads_stopped(counter: Counter) -> None:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        hold = held(counter, Events([]))
        hold.arm()
        os.write(write, b"x")
        signal.pause()
    os.read(read, 1)
    before = counter.values
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)

    Counter.wait_for(lambda: proc.group_stopped(counter.pid))
    assert counter.values == before


def test_a_stopped_process_is_known_and_stays_stopped(counter: Counter, events: Events) -> None:
    os.kill(counter.pid, signal.SIGSTOP)
    Counter.wait_for(lambda: proc.group_stopped(counter.pid))

    hold = held(counter, events)
    assert hold.stopped == {counter.pid}
    hold.arm()
    hold.disarm(soon())
    hold.close()

    Counter.wait_for(lambda: proc.group_stopped(counter.pid))
    assert counter.moves() == set()
    os.kill(counter.pid, signal.SIGCONT)
    Counter.wait_for(lambda: counter.moves() >= {0, 1, 2, 3})


def test_a_stop_that_was_sent_meanwhile_takes_effect_afterwards(counter: Counter, events: Events) -> None:
    hold = held(counter, events)
    hold.let_run([counter.pid])
    os.kill(counter.pid, signal.SIGSTOP)
    events.until(lambda: False, Deadline.after(0.05))
    assert "T (stopped)" not in Path(f"/proc/{counter.pid}/status").read_text()
    hold.halt(soon())
    hold.close()

    Counter.wait_for(lambda: proc.group_stopped(counter.pid))


def test_a_process_that_dies_while_held_is_forgotten(counter: Counter, events: Events) -> None:
    hold = held(counter, events)
    hold.arm()
    counter.process.kill()  # its threads are reported to the tracer first

    hold.disarm(soon())
    hold.halt(soon())
    hold.close()
    assert hold.tids == []


def test_another_tracer_is_waited_for_and_reported(counter: Counter, events: Events) -> None:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        held(counter, Events([]))
        os.write(write, b"x")
        signal.pause()
    os.read(read, 1)
    hold = Hold(events)

    with pytest.raises(PermissionError):
        hold.seize([counter.pid], Deadline.after(0.05))

    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    hold.seize([counter.pid], soon())
    hold.settle(soon())
    hold.close()


def test_no_thread_of_an_abandoned_process_keeps_its_tracer(counter: Counter, events: Events) -> None:
    hold = held(counter, events)
    hold.let_run(hold.tids[:2])

    abandon(SimpleNamespace(hold=hold))  # type: ignore[arg-type]

    assert [proc.tracer(counter.pid, tid) for tid in proc.threads(counter.pid)] == [0] * 4
    Counter.wait_for(lambda: counter.moves() >= {0, 1, 2, 3})
