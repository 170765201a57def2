"""A private containerd: own root, state, socket and namespace below one temporary folder, gone afterwards.

An engine that the machine may already run is not asked, configured or touched.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from diapause.runtime.cli.demo.programs import Programs
from diapause.runtime.errors import Internal

_CONFIG = """\
version = 2
root = "{base}/root"
state = "{base}/state"
disabled_plugins = [
  "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime",
  "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.blockfile",
  "io.containerd.snapshotter.v1.erofs", "io.containerd.internal.v1.tracing",
]
[grpc]
  address = "{base}/c.sock"
"""
_START = 30.0  # seconds until it has to answer
_COMMAND = 120.0  # seconds for one ctr command; a checkpoint of the demo takes one


class Containerd:
    """Started by start(), ended by close(), also when it never came up."""

    def __init__(self, base: Path, programs: Programs, env: Mapping[str, str]) -> None:
        self.base = base
        self.namespace = f"diapause-{os.getpid()}"
        self.address = base / "c.sock"
        self.log = base / "containerd.log"
        self._programs = programs
        self.env = {"PATH": programs.path(), "HOME": str(base), "TMPDIR": str(base / "tmp"), **env}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns when it answers. Raises Internal with the last line of its log."""
        (self.base / "tmp").mkdir()
        config = self.base / "containerd.toml"
        config.write_text(_CONFIG.format(base=self.base))
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs["containerd"], "--config", config],
                cwd=self.base, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        end = time.monotonic() + _START
        while not (plugins := self._plugins()):
            if self._process.poll() is not None or time.monotonic() > end:
                last = self.log.read_text(errors="replace").strip().rpartition("\n")[2]
                raise Internal("containerd-failed", "demo: private containerd", last, log=str(self.log))
            time.sleep(0.02)
        if not any(line.split()[1::2] == ["overlayfs", "ok"] for line in plugins):
            self.env["CONTAINERD_SNAPSHOTTER"] = "native"

    def ctr(self, *args: str) -> str:
        """Run `ctr` against it and return its output. Raises Internal with what ctr said."""
        done = self._run(args)
        if done.returncode:
            said = (done.stderr or done.stdout).strip().rpartition("\n")[2].removeprefix("ctr: ")
            raise Internal("demo-failed", f"demo: ctr {' '.join(args[:2])}", said, log=str(self.log))
        return done.stdout

    def close(self) -> None:
        """End containers, shims and daemon, by pid, and remove their traces outside the folder."""
        if self._process is not None:
            self._remove_containers()
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        for pid in self._shims():
            for one in [*_descendants(pid), pid]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(one, signal.SIGKILL)
        for target in _mounts(self.base):
            subprocess.run(["umount", "-l", target], check=False, capture_output=True)
        shutil.rmtree(Path("/run/containerd/runc", self.namespace), ignore_errors=True)
        for folder in ("runc", "fifo", "s", ""):
            with contextlib.suppress(OSError):
                os.rmdir(os.path.join("/run/containerd", folder))  # only if it is empty: nobody else uses it

    def _run(self, args: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._programs["ctr"], "--address", self.address, "--namespace", self.namespace, *args],
            cwd=self.base, env=self.env, check=False, capture_output=True, text=True, timeout=_COMMAND,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def _plugins(self) -> list[str]:
        return self._run(["plugins", "ls"]).stdout.splitlines() if self.address.exists() else []

    def _remove_containers(self) -> None:
        for name in self._run(["task", "ls", "-q"]).stdout.split():
            self._run(["task", "rm", "--force", name])
        for name in self._run(["container", "ls", "-q"]).stdout.split():
            self._run(["container", "rm", name])

    def _shims(self) -> list[int]:
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if str(self.address).encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
        return found


def _descendants(pid: int) -> list[int]:
    found = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, children.read_text().split()):
                found += [*_descendants(child), child]
    return found


def _mounts(base: Path) -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    targets = [line.split()[4] for line in lines]
    return sorted((target for target in targets if target.startswith(f"{base}/")), reverse=True)
