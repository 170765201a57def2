"""One machine under test: a private containerd, an isolated Diapause, an image with the workloads."""

import itertools
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from integration.harness import image as images
from integration.harness import proc, workloads
from integration.harness.container import Container
from integration.harness.ctr import Ctr, CtrError
from integration.harness.daemon import Containerd
from integration.harness.diapause import Settings
from integration.harness.tools import Toolset, install

IMAGE = "docker.io/library/workloads:latest"
_numbers = itertools.count(1)


class Node:
    """Started by `start`, ended by `close`. Containers run with `diapause-runc` unless told otherwise."""

    def __init__(self, tools: Toolset, *, unified: bool = False) -> None:
        self.daemon = Containerd(tools, {}, unified=unified)
        try:
            self.settings = Settings.make(self.daemon.base, tools)
        except BaseException:
            self.daemon.close()
            raise
        self.daemon.env.update(self.settings.env)
        self._containers: list[Container] = []
        self._references: list[str] = []

    def start(self) -> Self:
        self.daemon.start()
        self.ctr = Ctr(self.daemon)
        self.load(IMAGE, workloads.layer(self.daemon.tools))
        return self

    def load(self, name: str, layer: bytes) -> None:
        """Import an image with this layer."""
        archive = self.daemon.base / "image.tar"
        images.archive(archive, name, layer)
        self.ctr("i", "import", str(archive), seconds=300)
        archive.unlink()

    def close(self) -> None:
        self.clean()
        self.daemon.close()

    @property
    def path(self) -> Path:
        return self.daemon.base

    def quiet(self, *args: str) -> None:
        """Run `ctr`, and do not mind if it fails."""
        try:
            self.ctr(*args)
        except CtrError:
            pass

    def reference(self) -> str:
        """A name for a new checkpoint image; it is removed when the test ends."""
        name = f"docker.io/library/checkpoint:{next(_numbers)}"
        self._references.append(name)
        return name

    def name(self) -> str:
        return f"c{next(_numbers)}"

    def run(
        self,
        *workload: str,
        id: str = "",
        engine: str = "driver",
        runtime: Path | None = None,
        options: Sequence[str] = (),
        image: str = IMAGE,
        env: Mapping[str, str] | None = None,
        seconds: float = 60.0,
    ) -> Container:
        """`ctr run -d` of a workload that appends its output to /out/log of its rootfs.

        `engine` becomes the annotation; an empty one asks for nothing and shares the host's network.
        `runtime` is the low-level runtime, by default the installed `diapause-runc`.
        """
        container = self.adopt(id or self.name())
        args = ["run", "-d", "--runc-binary", str(runtime or install().runtime)]
        if self.daemon.unified:  # a v2 tree beside v1 has no controllers to set shares with
            args += ["--cpu-shares", "0"]
        if not engine:  # without our CRIU file, CRIU would lock a network of its own by iptables
            args += ["--net-host"]
        else:
            args += [
                "--annotation",
                f"diapause.dev/gpu={engine}",
                "--annotation",
                f"diapause.dev/gpu-enabled={'false' if engine == 'off' else 'true'}",
            ]
        for key, value in (env or {}).items():
            args += ["--env", f"{key}={value}"]
        shell = ["/bin/sh", "-c", 'exec "$@" >>/out/log 2>&1', "sh"]
        self.ctr(*args, *options, image, container.id, *shell, *workload, seconds=seconds)
        return container

    def adopt(self, id: str) -> Container:
        """A handle for a container of that name; it is removed when the test ends."""
        container = Container(self, id)
        self._containers.append(container)
        return container

    def restore(self, reference: str, id: str = "", *, seconds: float = 60.0) -> Container:
        """`ctr c restore --live --rw` under a name (a new one by default)."""
        container = self.adopt(id or self.name())
        self.ctr("c", "restore", "--rw", "--live", container.id, reference, seconds=seconds)
        return container

    def forget(self, reference: str) -> None:
        """Remove a checkpoint image now, so that a second one of the same container is complete.

        `ctr c checkpoint` finds the blob of an unchanged spec present, ignores that and writes an image
        without task and spec.
        """
        self.quiet("i", "rm", "--sync", reference)
        if reference in self._references:
            self._references.remove(reference)

    def clean(self) -> None:
        """Remove what the test made through this node."""
        while self._containers:
            self._containers.pop().remove()
        while self._references:
            self.quiet("i", "rm", "--sync", self._references.pop())
        self.sweep()

    def sweep(self) -> None:
        """Remove what containerd leaves behind by itself: the unpacked image of every restore."""
        for folder in self.daemon.temp.glob("ct*-checkpoint*"):
            shutil.rmtree(folder, ignore_errors=True)

    def footprint(self) -> dict[str, list[str]]:
        """Everything a container or an operation could leave behind on this node."""
        base = str(self.daemon.base)
        own = {self.daemon.pid, os.getpid()}
        return {
            "tasks": sorted(re.findall(r"^(\S+)\s+\d+\s", self.ctr("task", "ls"), re.M)),
            "containers": self.ctr("c", "ls", "-q").split(),
            "snapshots": sorted(re.findall(r"^(\S+).*Active", self.ctr("snapshot", "ls"), re.M)),
            "runc": sorted(os.listdir(self.daemon.runc_root)) if self.daemon.runc_root.exists() else [],
            "mounts": sorted(self._mounts()),
            "registered": self.settings.registered(),
            "temporary": sorted(
                p.name
                for p in self.daemon.temp.iterdir()
                if not re.match(r"ctr?d-checkpoint|containerd-mount", p.name)
            ),
            "processes": sorted(
                proc.cmdline(p)
                for p in proc.pids()
                if p not in own
                and f"{base}/" in (line := proc.cmdline(p))
                and "containerd-shim" not in line
                and " events" not in line
            ),
        }

    def _mounts(self) -> list[str]:
        lines = Path(f"/proc/{self.daemon.pid}/mountinfo").read_text().splitlines()
        targets = [line.split()[4] for line in lines]
        return [t for t in targets if t.startswith((f"{self.daemon.base}/", "/tmp/.criu"))]

    def config(self, container: Container) -> str:
        """The text of its config.json, as the runtime sees it."""
        return (self.daemon.bundle(container.id) / "config.json").read_text()

    def runc(self, *args: str, runtime: Path | None = None) -> subprocess.CompletedProcess[str]:
        """The low-level runtime by hand, on this node's containers and with the daemon's environment."""
        argv = [str(runtime or install().runtime), "--root", str(self.daemon.runc_root), *args]
        return subprocess.run(
            argv, capture_output=True, text=True, env=self.daemon.env, timeout=60, check=False
        )
