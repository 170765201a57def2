# SPDX-License-Identifier: Apache-2.0
"""pytest fixtures: GPU containers on the software GPU, checkpointed and restored by Diapause.

Copy this file beside your conftest.py and say there

    pytest_plugins = ["diapause_gpu"]

It needs root, Linux, pytest and an installed Diapause (`diapause` in PATH, or its folder in DIAPAUSE_BIN):
nothing else: containerd, runc and CRIU come from `diapause components get`. Each run has a containerd, a
namespace and folders of its own; nothing on the machine is changed, and no engine that is there is touched.

    def test_my_service_survives(gpu_node):
        gpu_node.load("my-image.tar", "docker.io/library/my:1")           # docker save, or any docker archive
        container = gpu_node.run("docker.io/library/my:1", "/serve")
        container.wait_line("ready")
        snapshot = container.checkpoint()
        container.remove()
        gpu_node.restore(snapshot).wait_line("ready again")

The image has to have /bin/sh: what the program prints goes to /diapause-ci.log in its root. The software GPU
runs no kernels but those of Diapause's own programs: it is for the paths around them, memory and streams.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

CONFIG = """\
version = 2
root = "{base}/root"
state = "{base}/state"
disabled_plugins = [
  "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime",
]
[grpc]
  address = "{base}/c.sock"
"""
SETTINGS = """\
[criu]
path = "{criu}"
network-lock = "skip"
[cdi]
spec-dirs = ["{base}/cdi"]
"""
LOG = "diapause-ci.log"
T = TypeVar("T")


class GpuNode:
    """A containerd of its own, whose containers get the software GPU."""

    def __init__(self) -> None:
        self._bin = os.environ.get("DIAPAUSE_BIN") or os.path.dirname(shutil.which("diapause") or "")
        if not self._bin:
            raise RuntimeError("no `diapause` in PATH: install it, or set DIAPAUSE_BIN to its folder")
        self.base = Path(tempfile.mkdtemp(prefix="gpu-"))
        self.namespace = f"ci{os.getpid()}"
        self._numbers = itertools.count(1)
        self._containers: list[GpuContainer] = []
        folders = self._diapause("components", "get", "debian-pair", "criu").split()
        path = ":".join([self._bin, *(f"{folder}/bin" for folder in folders), os.environ["PATH"]])
        self.env = {
            "PATH": path, "HOME": str(self.base), "TMPDIR": str(self.base / "tmp"), "LC_ALL": "C",
            "DIAPAUSE_CONFIG": str(self.base / "diapause.toml"), "DIAPAUSE_RUN_DIR": str(self.base / "run"),
            "DIAPAUSE_STATE_DIR": str(self.base / "lib"),
        }  # fmt: skip
        (self.base / "tmp").mkdir()
        criu = shutil.which("criu", path=path)
        (self.base / "diapause.toml").write_text(SETTINGS.format(base=self.base, criu=criu))
        (self.base / "config.toml").write_text(CONFIG.format(base=self.base))
        self._diapause("cdi", "generate", "--software", "--output", str(self.base / "cdi/gpu.json"))
        with (self.base / "containerd.log").open("ab") as log:
            self._daemon = subprocess.Popen(
                [str(shutil.which("containerd", path=path)), "-c", str(self.base / "config.toml")],
                env=self.env, cwd=self.base, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        wait(self._answers, "answer from containerd", seconds=30)

    def _diapause(self, *words: str) -> str:
        argv = [f"{self._bin}/diapause", *words]
        env = getattr(self, "env", dict(os.environ))
        return subprocess.run(argv, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout

    def _answers(self) -> bool:
        if self._daemon.poll() is not None:
            raise RuntimeError(f"containerd ended: {(self.base / 'containerd.log').read_text()[-2000:]}")
        argv = ["ctr", "-a", str(self.base / "c.sock"), "version"]
        return subprocess.run(argv, env=self.env, capture_output=True, check=False).returncode == 0

    def ctr(self, *words: str, seconds: float = 120) -> str:
        """stdout of `ctr` in this node's namespace; an AssertionError with what it said if it fails."""
        argv = ["ctr", "-a", str(self.base / "c.sock"), "-n", self.namespace, *words]
        done = subprocess.run(
            argv, env=self.env, capture_output=True, text=True, timeout=seconds, check=False
        )
        assert done.returncode == 0, f"ctr {' '.join(words)}: {done.stderr.strip()}"
        return done.stdout

    def load(self, archive: str | os.PathLike[str], name: str) -> None:
        """Import a docker archive; `name` is the image's full name in it."""
        self.ctr("images", "import", os.fspath(archive), seconds=600)
        assert name in self.ctr("images", "ls", "-q").split(), f"no {name} in {archive}"

    def run(self, image: str, *argv: str, env: dict[str, str] | None = None) -> GpuContainer:
        """Start a program in the background, with the software GPU and the host's network."""
        container = self._new()
        words = [word for key, value in (env or {}).items() for word in ("--env", f"{key}={value}")]
        words += ["--net-host", "--annotation", "diapause.dev/gpu-enabled=true"]
        shell = ("/bin/sh", "-c", f'exec "$@" >>/{LOG} 2>&1', "sh")
        runtime = ("--runc-binary", f"{self._bin}/diapause-runc")
        self.ctr("run", "--detach", *runtime, *words, image, container.id, *shell, *argv)
        return container

    def restore(self, snapshot: str) -> GpuContainer:
        """A new container from a checkpoint; it goes on where that was made."""
        container = self._new()
        self.ctr("containers", "restore", "--rw", "--live", container.id, snapshot)
        return container

    def _new(self) -> GpuContainer:
        container = GpuContainer(self, f"c{next(self._numbers)}")
        self._containers.append(container)
        return container

    def clean(self) -> None:
        while self._containers:
            self._containers.pop().remove()
        for folder in (self.base / "tmp").glob("ct*-checkpoint*"):
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        self.clean()
        self._daemon.terminate()
        try:
            self._daemon.wait(20)
        except subprocess.TimeoutExpired:
            self._daemon.kill()
            self._daemon.wait(20)
        for line in reversed(Path("/proc/self/mountinfo").read_text().splitlines()):
            if (target := line.split()[4]).startswith(f"{self.base}/"):
                subprocess.run(["umount", "--lazy", target], check=False, capture_output=True)
        shutil.rmtree(Path("/run/containerd/runc") / self.namespace, ignore_errors=True)
        shutil.rmtree(self.base, ignore_errors=True)


class GpuContainer:
    """A container of the node; removed when the test ends."""

    def __init__(self, node: GpuNode, id: str) -> None:
        self.node = node
        self.id = id
        self._seen = ""

    def logs(self) -> str:
        """What the program has printed; after a restore, with what it printed before."""
        tasks = self.node.base / "state/io.containerd.runtime.v2.task" / self.node.namespace
        try:
            self._seen = (tasks / self.id / "rootfs" / LOG).read_text(errors="replace")
        except OSError:  # removed: what was read last stands
            pass
        return self._seen

    def wait_line(self, pattern: str, *, seconds: float = 30) -> str:
        """Wait for a line that matches a regular expression; returns it."""
        what = f"line {pattern!r} in {self.id}"
        return wait(lambda: next((x for x in self.logs().splitlines() if re.search(pattern, x)), ""), what,
                    seconds=seconds)  # fmt: skip

    def checkpoint(self) -> str:
        """An image with memory, GPU memory and files; the container runs on."""
        name = f"localhost/{self.id}:{time.monotonic_ns()}"
        self.node.ctr("containers", "checkpoint", "--rw", "--task", self.id, name)
        return name

    def status(self) -> str:
        """RUNNING, STOPPED, PAUSED, or "" without a task."""
        found = re.search(rf"^{self.id}\s+\d+\s+(\w+)", self.node.ctr("tasks", "ls"), re.M)
        return found[1] if found else ""

    def remove(self) -> None:
        for words in ("tasks kill -s 9", "tasks rm -f", "containers rm", "snapshots rm"):
            try:
                self.logs()
                self.node.ctr(*words.split(), self.id)
                if "kill" in words:
                    wait(lambda: self.status() in ("", "STOPPED"), f"end of {self.id}", seconds=10)
            except AssertionError:  # it never got that far
                pass


def wait(condition: Callable[[], T], what: str, *, seconds: float) -> T:
    """The first true value of `condition`."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, f"no {what} within {seconds:g} s"
        time.sleep(0.05)
    return value


@pytest.fixture(scope="session")
def _gpu_node() -> Iterator[GpuNode]:
    if os.geteuid() != 0:
        pytest.skip("containers with CRIU need root")
    node = GpuNode()
    yield node
    node.close()


@pytest.fixture
def gpu_node(_gpu_node: GpuNode) -> Iterator[GpuNode]:
    """A node with the software GPU; the containers of the test are removed after it."""
    yield _gpu_node
    _gpu_node.clean()
