"""A private containerd: own root, state, socket and namespace below one temporary folder, gone afterwards.

An engine that the machine may already run is not asked, configured or touched.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from diapause.runtime.cli.demo import remains
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
_END = 10.0  # seconds for what should end by itself


class Containerd:
    """Started by start(), ended by close(), also when it never came up."""

    def __init__(self, base: Path, programs: Programs, env: Mapping[str, str]) -> None:
        self.base = base
        self.namespace = base.name
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
        try:
            done = self._run(args)
        except subprocess.TimeoutExpired as expired:
            why = f"no end after {expired.timeout:.0f} s"
            raise Internal("demo-failed", f"demo: ctr {' '.join(args[:2])}", why, log=str(self.log)) from None
        if done.returncode:
            said = (done.stderr or done.stdout).strip().rpartition("\n")[2].removeprefix("ctr: ")
            raise Internal("demo-failed", f"demo: ctr {' '.join(args[:2])}", said, log=str(self.log))
        return done.stdout

    def close(self) -> None:
        """End the containers in their proper way, the daemon by its pid, and whatever is left."""
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._remove_containers()
            self._process.terminate()
            try:
                self._process.wait(_END)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        remains.remove(self.base, self.namespace)

    def _run(self, args: Sequence[str], seconds: float = _COMMAND) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._programs["ctr"], "--address", self.address, "--namespace", self.namespace, *args],
            cwd=self.base, env=self.env, check=False, capture_output=True, text=True, timeout=seconds,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def _plugins(self) -> list[str]:
        return self._run(["plugins", "ls"]).stdout.splitlines() if self.address.exists() else []

    def _remove_containers(self) -> None:
        for name in self._run(["task", "ls", "-q"], _END).stdout.split():
            self._run(["task", "rm", "--force", name], _END)
        for name in self._run(["container", "ls", "-q"], _END).stdout.split():
            self._run(["container", "rm", name], _END)
