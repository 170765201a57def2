"""Which processes use a GPU, and how the manifest lists them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from diapause.runtime.engine import processes
from diapause.runtime.engine.processes import Devices
from diapause.runtime.linux import proc

GPU = {"devices": [{"path": "/dev/diapause-gpu0", "major": 1, "minor": 3}]}  # /dev/null


@pytest.fixture
def cgroup(tmp_path: Path) -> Iterator[Path]:
    """Two sleeping processes; the first holds the device."""
    found = [
        subprocess.Popen(["sleep", "60"], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for stdin in (subprocess.DEVNULL, subprocess.PIPE)
    ]
    (tmp_path / "cgroup.procs").write_text("".join(f"{process.pid}\n" for process in found))
    try:
        yield tmp_path
    finally:
        for process in found:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()


def pids(cgroup: Path) -> list[int]:
    return [int(word) for word in (cgroup / "cgroup.procs").read_text().split()]


def test_a_holder_of_the_device_is_found(cgroup: Path) -> None:
    first, _ = pids(cgroup)

    (found,) = processes.gpu_processes(str(cgroup), Devices(GPU))

    assert (found.pid, found.holds_device, found.library) == (first, True, False)
    assert found.alive
    found.close()


def test_known_processes_are_not_found_again(cgroup: Path) -> None:
    assert processes.gpu_processes(str(cgroup), Devices(GPU), pids(cgroup)) == []


def test_without_devices_nobody_holds_one(cgroup: Path) -> None:
    assert processes.gpu_processes(str(cgroup), Devices({"devices": []})) == []


def test_a_process_with_our_library_is_found_without_a_device(tmp_path: Path) -> None:
    page = os.memfd_create("diapause-control-v1")
    (tmp_path / "cgroup.procs").write_text(f"{os.getpid()}\n")

    (found,) = processes.gpu_processes(str(tmp_path), Devices({}))

    assert (found.holds_device, found.library) == (False, True)
    found.close()
    os.close(page)


def test_every_node_of_the_nvidia_driver_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proc, "character_majors", lambda prefix: {195, 507} if prefix == "nvidia" else set())
    devices = Devices({"devices": [{"path": "/dev/nvidia0", "major": 195, "minor": 0}]})

    assert devices.has(os.makedev(195, 255))
    assert devices.has(os.makedev(507, 1))
    assert not devices.has(os.makedev(1, 3))
    assert not devices.has(0)


def test_processes_are_listed_by_the_pid_that_the_container_sees(cgroup: Path) -> None:
    first, second = pids(cgroup)

    found = processes.listed(str(cgroup), first, [first])

    assert [(p.pid, p.comm, p.gpu, p.stopped) for p in found] == [
        (first, "sleep", True, False),
        (second, "sleep", False, False),
    ]
    assert processes.by_inner_pid(str(cgroup), first) == {first: first, second: second}


def test_memory_is_what_a_dump_would_write(cgroup: Path) -> None:
    assert 0 < processes.memory(pids(cgroup)) < 1 << 26
    assert processes.memory([2**30]) == 0
