"""A controller on the software GPU, and a program whose memory it is given. /dev/null is their device."""

import fcntl
import importlib.util
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from diapause.runtime.gpud import client, wire
from diapause.runtime.linux.deadline import Deadline
from diapause.runtime.store.gpu_index import BLOCK, Allocation

FAKES = Path(__file__).parents[2] / "fakes"
BUILT = Path(__file__).parents[3] / "build/editable/diapause/native"
GPU = "GPU-d1a9a05e-50f7-4000-8000-000000000000"  # the software GPU's
CONTAINER = "c0ffee00" * 4


class Program:
    """A process with device memory."""

    def __init__(self, libcuda: str) -> None:
        self.end, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.end.settimeout(30)
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, str(FAKES / "gpu_program.py"), str(theirs.fileno()), libcuda],
                pass_fds=[theirs.fileno()],
            )
        self._fds: list[int] = []

    def make(self, *blocks: list[int]) -> list[int]:
        """An fd for each allocation, of blocks with these seeds; closed at the end of the test."""
        wire.send(self.end, {"op": "make", "blocks": list(blocks)})
        received = wire.receive(self.end)
        assert received
        self._fds += received[1]
        return received[1]

    def read(self, fds: list[int], sizes: list[int]) -> list[str]:
        """The digest of the memory behind each fd."""
        wire.send(self.end, {"op": "read", "sizes": sizes}, fds)
        received = wire.receive(self.end)
        assert received
        digests: list[str] = received[0]["digests"]
        return digests

    def release(self, fd: int) -> None:
        self._fds.remove(fd)
        os.close(fd)

    def close(self) -> None:
        wire.close_all(self._fds)
        self.end.close()
        self.process.wait(30)


@pytest.fixture
def libcuda(host: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The software GPU, with 256 MiB, for a controller that ends soon."""
    for name in ("softgpu/libcuda.so.1", "lib/libdiapause-blocks.so", "lib/block_hash.ptx"):
        if not (BUILT / name).exists():
            pytest.skip(f"{name} is not built: make native")
    for name, value in (
        ("NATIVE_DIR", str(BUILT)), ("SOFTGPU_DEVICE", "/dev/null"), ("SOFTGPU_MEMORY", "256M"),
        ("GPU_IDLE_TIMEOUT", "1"), ("GPU_POOL", "64MiB"), ("GPU_MEMORY_WAIT", "0.3"),
    ):  # fmt: skip
        monkeypatch.setenv(f"DIAPAUSE_{name}", value)
    (host / "run/c" / CONTAINER).mkdir(parents=True, mode=0o700)
    (host / "run").chmod(0o700)
    return str(BUILT / "softgpu/libcuda.so.1")


@pytest.fixture
def program(libcuda: str) -> Iterator[Program]:
    program = Program(libcuda)
    yield program
    program.close()


@pytest.fixture
def connect(libcuda: str, host: Path) -> Iterator[Callable[[], client.Controller]]:
    """Connects, starting a controller if there is none; it is gone after the test."""
    made: list[client.Controller] = []

    def connected() -> client.Controller:
        made.append(client.connect(GPU, libcuda, Deadline.after(30)))
        return made[-1]

    yield connected
    for controller in made:
        controller.close()
    _end(host)


def _end(host: Path) -> None:
    """End the controller with whatever it holds, and wait for that: its keeper has the lock meanwhile."""
    path = host / f"run/gpud/{GPU}/lock"
    if not path.exists():
        return
    with path.open("r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.kill(int(file.read()), signal.SIGTERM)
            fcntl.flock(file, fcntl.LOCK_EX)  # pytest's own time limit bounds it


@pytest.fixture
def controller(connect: Callable[[], client.Controller]) -> client.Controller:
    return connect()


@pytest.fixture
def deadline() -> Deadline:
    return Deadline.after(60)


@pytest.fixture
def directory(host: Path) -> Iterator[int]:
    """An empty directory for a snapshot."""
    (host / "snapshot").mkdir()
    fd = os.open(host / "snapshot", os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


@pytest.fixture
def allocation() -> Callable[..., Allocation]:
    """An allocation of so many blocks, by number; `process` is another than 1 if that is given."""

    def made(number: int, blocks: int, process: int = 1) -> Allocation:
        address = 0x300000000000 + number * BLOCK * 64
        return Allocation(process=process, device=0, id=number, address=address, size=blocks * BLOCK)

    return made


@pytest.fixture
def digest() -> Callable[[list[int]], str]:
    """The digest of the memory that a program makes of these seeds."""
    spec = importlib.util.spec_from_file_location("gpu_program", FAKES / "gpu_program.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function: Callable[[list[int]], str] = module.digest
    return function


@pytest.fixture
def container() -> str:
    """A container's key; its directory is there."""
    return CONTAINER
