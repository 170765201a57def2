"""What a private containerd may leave when it is ended: shims, containers, controllers, mounts, cgroups.

Everything is found by names that belong to one run alone: its folder, and its namespace, after which ctr also
names the cgroup.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_PATIENCE = 5.0  # seconds for killed processes to go


def remove(base: Path, namespace: str) -> None:
    """Kill, unmount and remove; returns when it is done or cannot be done."""
    _thaw(namespace)
    end = time.monotonic() + _PATIENCE
    while (found := set(_processes(base, namespace))) and time.monotonic() < end:
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    for target in _mounts(base):
        subprocess.run(["umount", "-l", target], check=False, capture_output=True)
    for group in _groups(namespace):
        for folder, _, _ in os.walk(group, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
    shutil.rmtree(Path("/run/containerd/runc", namespace), ignore_errors=True)
    for name in ("runc", "fifo", "s", ""):
        with contextlib.suppress(OSError):
            os.rmdir(os.path.join("/run/containerd", name))  # only if it is empty: nobody else uses it


def _processes(base: Path, namespace: str) -> Iterator[int]:
    """The shims, by the address in their command line, all that is in the run's cgroups, and controllers.

    Those of GPUs, and their keepers, would stay a while for the next checkpoint.
    """
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command, groups = (entry / "cmdline").read_bytes(), (entry / "cgroup").read_text()
            shim = f"{base}/c.sock".encode() in command and int(entry.name) != os.getpid()
            if shim or f":/{namespace}/" in groups or _is_controller(command, entry, base):
                yield int(entry.name)


def _is_controller(command: bytes, process: Path, base: Path) -> bool:
    if b"diapause.runtime.gpud" not in command:
        return False
    words = (process / "environ").read_bytes().split(b"\0")
    return any(word.startswith(f"DIAPAUSE_RUN_DIR={base}/".encode()) for word in words)


def _thaw(namespace: str) -> None:
    """A frozen process does not die: on cgroup v1 not even of SIGKILL."""
    for group in _groups(namespace):
        for name, word in (("freezer.state", "THAWED"), ("cgroup.freeze", "0")):
            for file in group.glob(f"*/{name}"):
                with contextlib.suppress(OSError):
                    file.write_text(word)


def _groups(namespace: str) -> list[Path]:
    """On cgroup v1 there is one for each controller."""
    return [path for path in (_CGROUPS / namespace, *_CGROUPS.glob(f"*/{namespace}")) if path.is_dir()]


def _mounts(base: Path) -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    targets = [line.split()[4] for line in lines]
    return sorted((target for target in targets if target.startswith(f"{base}/")), reverse=True)
