"""Memory that a process has freed is let go: with the real library in the process, on the software GPU."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from diapause.runtime.engine.control import connect as connect_library
from diapause.runtime.linux.deadline import Deadline
from diapause.runtime.linux.locks import Lock
from diapause.runtime.store.gpu_index import Allocation

BUILT = Path(__file__).parents[3] / "build/editable/diapause/native"

PROGRAM = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
def must(result):
    if result: raise SystemExit(f"CUresult {result}")
context, memory = ctypes.c_void_p(), []
must(cuda.cuInit(0))
must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
must(cuda.cuCtxSetCurrent(context))
for _ in range(4):
    memory.append(ctypes.c_uint64())
    must(cuda.cuMemAlloc_v2(ctypes.byref(memory[-1]), ctypes.c_size_t(8 << 20)))
print("ready", flush=True)
for line in sys.stdin:
    must(cuda.cuMemFree_v2(memory[int(line)]))
    print("freed", flush=True)
"""


class Managed:
    """A program with our library in front of the software GPU; four allocations of 8 MiB."""

    def __init__(self, folder: Path) -> None:
        (folder / "libcuda.so.1").symlink_to(BUILT / "lib/libdiapause-cuda.so")
        environment = {
            "LD_LIBRARY_PATH": str(folder),
            "DIAPAUSE_REAL_LIBCUDA": str(BUILT / "softgpu/libcuda.so.1"),
            "DIAPAUSE_SOFTGPU_DEVICE": "/dev/null",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-c", PROGRAM],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        self.pidfd = os.pidfd_open(self.process.pid)
        assert self._read() == "ready"

    def _read(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def free(self, number: int) -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{number}\n")
        self.process.stdin.flush()
        assert self._read() == "freed"

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        os.close(self.pidfd)


@pytest.fixture
def managed(host: Path) -> Iterator[Managed]:
    if not (BUILT / "lib/libdiapause-cuda.so").exists():
        pytest.skip("libdiapause-cuda.so is not built: make native")
    (host / "library").mkdir()
    managed = Managed(host / "library")
    yield managed
    managed.close()


@pytest.fixture
def handed_over(controller, managed, container, deadline) -> list[int]:
    """The ids of the program's memory, which went to the controller and came back."""
    with connect_library(managed.process.pid, managed.pidfd, deadline) as library:
        library.quiesce(deadline, timeout=10)
        memory = library.memory(deadline)
        fds: dict[int, int] = {}
        for at in range(0, len(memory), 16):
            fds |= library.export([one.id for one in memory[at : at + 16]], deadline)
        controller.begin(container, deadline)
        listed = [Allocation(process=1, device=0, id=m.id, address=m.address, size=m.size) for m in memory]
        controller.take(container, listed, fds, deadline)
        library.drop(deadline)
        library.attach(fds, deadline)
        library.open(deadline)
    for fd in fds.values():
        os.close(fd)
    controller.watch(container, 1, managed.pidfd, deadline)
    return [one.id for one in memory if one.size == 8 << 20]


def ids(controller, container, deadline) -> set[int]:
    return {one.id for one in controller.held(container, deadline)}


def gone(controller, container, deadline, wanted: set[int]) -> bool:
    """Whether these are let go, within some seconds."""
    end = Deadline.after(10)
    while ids(controller, container, deadline) & wanted:
        if end.expired:
            return False
    return True


def test_what_a_program_frees_is_let_go_and_nothing_else(
    controller, managed, container, deadline, handed_over
):
    before = ids(controller, container, deadline)
    assert set(handed_over) <= before

    managed.free(1)

    assert gone(controller, container, deadline, {handed_over[1]})
    assert ids(controller, container, deadline) == before - {handed_over[1]}
    managed.free(3)
    assert gone(controller, container, deadline, {handed_over[3]})


def test_nothing_is_let_go_while_an_operation_has_the_container(
    controller, managed, container, deadline, handed_over, host
):
    lock = Lock.try_take(str(host / f"run/c/{container}/lock"))
    assert lock
    with lock:
        managed.free(0)
        end = Deadline.after(0.5)
        while not end.expired:
            assert handed_over[0] in ids(controller, container, deadline)

    assert gone(controller, container, deadline, {handed_over[0]})


def test_a_controller_that_was_started_anew_goes_on_to_look(
    controller, managed, container, deadline, handed_over, connect
):
    os.kill(controller.hello(deadline).pid, 9)
    again = connect()
    managed.free(2)

    assert gone(again, container, deadline, {handed_over[2]})
