"""A private containerd: own root, state, socket, namespace and temporary directory."""

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from integration.harness import proc
from integration.harness.tools import Toolset
from integration.harness.wait import until

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

# A cgroup v2 tree where the host has a v1 one: private to the daemon and everything below it.
_UNIFIED = [
    "unshare",
    "--mount",
    "--propagation",
    "private",
    "sh",
    "-c",
    'umount -l /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup && exec "$@"',
    "sh",
]


_numbers = itertools.count(1)


class Containerd:
    """Started by `start`, ended by `close`; its base directory has a short name because of its sockets."""

    def __init__(self, tools: Toolset, env: Mapping[str, str], *, unified: bool = False) -> None:
        self.tools = tools
        self.base = Path(tempfile.mkdtemp(prefix="dp-"))
        self.namespace = f"dp{os.getpid()}-{next(_numbers)}"
        self.unified = unified
        self.temp = self.base / "tmp"
        self.env = {
            "PATH": tools.path,
            "TMPDIR": str(self.temp),
            "HOME": str(self.base),
            "LC_ALL": "C",
            **env,
        }
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> Path:
        return self.base / "c.sock"

    @property
    def log(self) -> Path:
        return self.base / "containerd.log"

    @property
    def pid(self) -> int:
        assert self._process is not None, "containerd is not running"
        return self._process.pid

    def bundle(self, container: str) -> Path:
        """A container's bundle, seen through the daemon's mount namespace."""
        path = self.base / "state/io.containerd.runtime.v2.task" / self.namespace / container
        return Path(f"/proc/{self.pid}/root{path}")

    @property
    def runc_root(self) -> Path:
        return Path("/run/containerd/runc") / self.namespace

    def start(self) -> Self:
        self.temp.mkdir(exist_ok=True)
        config = self.base / "config.toml"
        config.write_text(_CONFIG.format(base=self.base))
        argv = [*(_UNIFIED if self.unified else []), str(self.tools.find("containerd")), "-c", str(config)]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                argv,
                cwd=self.base,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until(self._ready, f"answer from containerd (log: {self.log})", seconds=30)
        return self

    def _ready(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError(
                f"containerd ended with {self._process.returncode}: {self.log.read_text()[-2000:]}"
            )
        ctr = [str(self.tools.find("ctr")), "-a", str(self.address), "version"]
        return subprocess.run(ctr, capture_output=True, timeout=20, check=False).returncode == 0

    def shims(self) -> list[int]:
        """The pids of the shims that this daemon started."""
        return [p for p in proc.pids() if str(self.address) in proc.cmdline(p) and p != self._pid_or_none()]

    def _pid_or_none(self) -> int | None:
        return self._process.pid if self._process else None

    def close(self) -> None:
        """End the daemon, then whatever shims and containers are left, and remove everything it wrote."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(20)
        for shim in self.shims():
            for pid in [shim, *proc.descendants(shim)]:
                proc.kill(pid, signal.SIGKILL)
        proc.unmount_below(self.base)
        shutil.rmtree(self.runc_root, ignore_errors=True)
        for cgroup in [
            *Path("/sys/fs/cgroup").glob(f"*/{self.namespace}"),
            Path("/sys/fs/cgroup") / self.namespace,
        ]:
            with contextlib.suppress(OSError):  # not there, or not ours to remove
                cgroup.rmdir()
        if not os.environ.get("DIAPAUSE_TEST_KEEP"):
            shutil.rmtree(self.base, ignore_errors=True)
