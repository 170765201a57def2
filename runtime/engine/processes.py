"""The processes of a container, and which of them use a GPU."""

from __future__ import annotations

import os

from diapause.runtime.linux import freezer, pidfd, proc
from diapause.runtime.store.manifest import Process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

CONTROL_PAGE = "/memfd:diapause-control-v1"  # our library makes it at the first use of CUDA


class Devices:
    """Which character devices are GPUs."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        """`state` is state.json: the devices of the specification, by number."""
        self._numbers = set()
        self._majors: set[int] = set()
        for device in state.get("devices") or []:
            if device["path"].startswith("/dev/nvidia"):
                # Every NVIDIA node counts, also those that are made later (nvidia-caps, nvidia-uvm).
                self._majors |= proc.character_majors("nvidia")
            if device.get("major") is not None:
                self._numbers.add(os.makedev(device["major"], device["minor"]))

    def has(self, number: int) -> bool:
        return number != 0 and (number in self._numbers or os.major(number) in self._majors)


class GpuProcess:
    """A process that holds a GPU or has our library at work; owns its pidfd."""

    __slots__ = ("holds_device", "library", "pid", "pidfd", "start", "tid")

    def __init__(self, pid: int, *, holds_device: bool, library: bool) -> None:
        """Raises ProcessLookupError when it is gone."""
        self.pid = pid
        self.holds_device = holds_device
        self.library = library
        self.tid = 0  # of the thread that the driver works with, once it is known
        self.pidfd = pidfd.pidfd_open(pid)
        try:
            self.start = proc.start_time(pid)
        except OSError:
            self.close()
            raise ProcessLookupError(3, "the process is gone", str(pid)) from None

    @property
    def alive(self) -> bool:
        return not pidfd.exited(self.pidfd)

    def close(self) -> None:
        os.close(self.pidfd)


def gpu_processes(cgroup: str, devices: Devices, known: Iterable[int] = ()) -> list[GpuProcess]:
    """The GPU processes below `cgroup` except the known ones. The caller owns them."""
    skip = set(known)
    found = []
    for pid in freezer.processes(cgroup):
        if pid in skip:
            continue
        holds_device, library = _look(pid, devices)
        if holds_device or library:
            try:
                found.append(GpuProcess(pid, holds_device=holds_device, library=library))
            except ProcessLookupError:
                continue
    return found


def holds_device(pid: int, devices: Devices) -> bool:
    return any(devices.has(fd.device) for fd in proc.fds(pid))


def _look(pid: int, devices: Devices) -> tuple[bool, bool]:
    holds_device = library = False
    for fd in proc.fds(pid):
        holds_device = holds_device or devices.has(fd.device)
        library = library or fd.target.startswith(CONTROL_PAGE)
    return holds_device, library


def listed(cgroup: str, init: int, gpu: Iterable[int]) -> list[Process]:
    """Every process of the container as the manifest records it."""
    level = len(proc.namespaced_pids(init)) - 1
    users = set(gpu)
    found = []
    for pid in freezer.processes(cgroup):
        try:
            inner = proc.namespaced_pids(pid)
            state = proc.run_state(pid)
            comm = proc.comm(pid)
        except OSError:
            continue
        if state not in "ZX" and len(inner) > level:
            found.append(
                Process(pid=inner[level], comm=comm, gpu=pid in users, stopped=proc.group_stopped(pid))
            )
    return found


def by_inner_pid(cgroup: str, init: int) -> dict[int, int]:
    """Pids of this host by the pids that the container's first process sees."""
    level = len(proc.namespaced_pids(init)) - 1
    found = {}
    for pid in freezer.processes(cgroup):
        try:
            inner = proc.namespaced_pids(pid)
        except OSError:
            continue
        if len(inner) > level:
            found[inner[level]] = pid
    return found


def memory(pids: Iterable[int]) -> int:
    """Bytes of private and shared memory that a dump of these processes has to write, at most."""
    private = shared = 0
    for pid in pids:
        private += _kilobytes(pid, "RssAnon")
        shared = max(shared, _kilobytes(pid, "RssShmem"))  # most likely the same in each, and dumped once
    return (private + shared) * 1024


def _kilobytes(pid: int, field: str) -> int:
    try:
        words = proc.status_field(f"/proc/{pid}/status", field).split()
    except OSError:
        return 0
    return int(words[0]) if words else 0
