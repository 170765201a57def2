"""The host's side with the library itself, on the software GPU, in a program that never stops."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from diapause.runtime import errors
from diapause.runtime.engine.control import Channel, Gate, MemoryFlag, connect, gate
from diapause.runtime.linux.deadline import Deadline
from tests.unit.conftest import FAKES, NATIVE

LIBRARY, REAL = NATIVE / "lib" / "libdiapause-cuda.so", NATIVE / "softgpu" / "libcuda.so.1"

pytestmark = pytest.mark.skipif(
    not (LIBRARY.exists() and REAL.exists()), reason="the native parts are not built: make native"
)


class Program:
    """cuda_program.py with the library as its libcuda."""

    def __init__(self, folder: Path) -> None:
        (folder / "libcuda.so.1").symlink_to(LIBRARY)
        environment = {
            "LD_LIBRARY_PATH": str(folder),
            "DIAPAUSE_REAL_LIBCUDA": str(REAL),
            "DIAPAUSE_SOFTGPU_DEVICE": "/dev/null",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-I", str(FAKES / "cuda_program.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        self.pid = self.process.pid
        self.pidfd = os.pidfd_open(self.pid)
        assert self._read() == "ready"

    def _read(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def rounds(self) -> int:
        """How often it has seen all of its memory."""
        assert self.process.stdin is not None
        self.process.stdin.write("rounds\n")
        self.process.stdin.flush()
        return int(self._read())

    def goes_on(self) -> bool:
        before, deadline = self.rounds(), Deadline.after(20)
        while self.rounds() < before + 2:
            if deadline.expired:
                return False
            time.sleep(0.002)
        return True

    def stands_still(self) -> bool:
        before = self.rounds()
        time.sleep(0.05)
        return self.rounds() == before

    def end(self) -> int:
        self.process.communicate("end\n", timeout=20)
        os.close(self.pidfd)
        return self.process.returncode


def soon() -> Deadline:
    return Deadline.after(20)


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    program = Program(tmp_path)
    before = len(os.listdir("/proc/self/fd"))
    yield program
    assert len(os.listdir("/proc/self/fd")) == before, "file descriptors were left open"
    assert program.end() == 0


@pytest.fixture
def channel(program: Program) -> Iterator[Channel]:
    with connect(program.pid, program.pidfd, soon()) as channel:
        yield channel


def test_memory_goes_and_comes_back_again_and_again(program: Program, channel: Channel) -> None:
    for _ in range(3):
        channel.quiesce(soon(), timeout=10)
        assert program.stands_still()
        memory = channel.memory(soon())
        imported = [entry.id for entry in memory if MemoryFlag.IMPORTED in entry.flags]
        channel.rehome(imported, soon())
        fds = channel.export([entry.id for entry in memory], soon())
        assert all(not os.get_inheritable(fd) for fd in fds.values())

        dropped = channel.drop(soon())
        assert (dropped.count, dropped.size) == (len(memory), sum(entry.size for entry in memory))
        assert not any(MemoryFlag.ATTACHED in entry.flags for entry in channel.memory(soon()))
        with pytest.raises(errors.FailedPrecondition) as error:
            channel.open(soon())
        assert error.value.code == "control-state"

        channel.attach(fds, soon())
        for fd in fds.values():
            os.close(fd)
        assert [entry.address for entry in channel.memory(soon())] == [entry.address for entry in memory]
        channel.open(soon())
        assert program.goes_on()


def test_what_was_brought_back_is_not_exported_before_it_is_at_home_again(
    program: Program, channel: Channel
) -> None:
    channel.quiesce(soon(), timeout=10)
    ids = [entry.id for entry in channel.memory(soon())]
    fds = channel.export(ids, soon())
    channel.drop(soon())
    channel.attach(fds, soon())
    for fd in fds.values():
        os.close(fd)

    with pytest.raises(errors.FailedPrecondition):
        channel.export(ids, soon())
    channel.rehome(ids, soon())
    for fd in channel.export(ids, soon()).values():
        os.close(fd)
    channel.open(soon())


def test_the_gate_of_a_stopped_program_is_closed_from_outside(program: Program, channel: Channel) -> None:
    os.kill(program.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, program.pid, os.WSTOPPED | os.WNOWAIT)
    assert gate.hold(program.pid, program.pidfd) is Gate.OPEN
    assert gate.hold(program.pid, program.pidfd) is Gate.CLOSING
    os.kill(program.pid, signal.SIGCONT)

    assert program.stands_still()
    channel.quiesce(soon(), timeout=10)
    assert gate.release(program.pid, program.pidfd) is Gate.CLOSED
    assert program.stands_still()
    channel.open(soon())
    assert program.goes_on()


def test_a_hold_can_be_taken_back(program: Program) -> None:
    os.kill(program.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, program.pid, os.WSTOPPED | os.WNOWAIT)
    gate.hold(program.pid, program.pidfd)
    gate.release(program.pid, program.pidfd)
    os.kill(program.pid, signal.SIGCONT)

    assert program.goes_on()


def test_a_wrong_file_is_no_memory(program: Program, channel: Channel) -> None:
    channel.quiesce(soon(), timeout=10)
    ids = [entry.id for entry in channel.memory(soon())]
    fds = channel.export(ids, soon())
    channel.drop(soon())
    with open("/dev/null", "rb") as null, pytest.raises(errors.Internal) as error:
        channel.attach({ids[0]: null.fileno()}, soon())
    assert error.value.code == "control-gpu-failed"
    assert f"allocation {ids[0]}: CUresult 999" in str(error.value)
    channel.attach(fds, soon())
    for fd in fds.values():
        os.close(fd)
    channel.open(soon())
    assert program.goes_on()


def test_devices_and_bytes_are_told_while_the_program_runs(program: Program, channel: Channel) -> None:
    (device,) = channel.devices(soon())
    assert (device.ordinal, device.contexts) == (0, 1)
    assert len(device.uuid) == 16
    assert any(device.uuid)

    stats = channel.stats(soon())
    assert stats.tracked == (2 + 4 + 10) << 20
    assert stats.slab >= 2 << 20
    assert (stats.allocations, stats.native, stats.managed_count, stats.foreign_count) == (6, 0, 0, 0)
