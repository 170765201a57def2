"""nerdctl and Docker against a node's private containerd: the commands that their users type.

Both take the same words. Containers print to the client's log, which outlives a checkpoint with exit, so a
gap or a repeated step in it is a fault.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

from integration.harness import image as images
from integration.harness import workloads
from integration.harness.node import Node
from integration.harness.output import Output
from integration.harness.tools import component, install
from integration.harness.wait import until

IMAGE = "workloads:latest"
GPU = ("--device", "diapause.dev/gpu=0")
RUN = (Path("/run/docker/plugins"), Path("/run/docker"))  # dockerd makes them wherever the rest of it lies


def toolkit() -> Path | None:
    """NVIDIA's container toolkit, which can be built where there is a C compiler."""
    return component("nvidia-toolkit-1.20") / "bin" if shutil.which("cc") else None


class ClientError(AssertionError):
    """The client failed; the text is what its user saw on stderr."""

    def __init__(self, argv: Sequence[str], status: int, stderr: str) -> None:
        super().__init__(f"{' '.join(argv)}: exit status {status}: {stderr}")
        self.status = status
        self.stderr = stderr


class Client:
    """`start` makes it usable, `close` ends what it started."""

    NAME = ""
    RUNTIME = ""  # how its users name diapause-runc

    def __init__(self, node: Node) -> None:
        self.node = node
        self.base: list[str] = []
        self.env = {**node.daemon.env, "PATH": f"{install().bin}:{node.daemon.env['PATH']}"}
        self._made: list[Started] = []

    def start(self) -> Self:
        return self

    def close(self) -> None:
        self.clean()

    def clean(self) -> None:
        while self._made:
            self._made.pop().remove()
        self.node.sweep()

    @property
    def version(self) -> str:
        raise NotImplementedError

    def checkpoint(self, container: str, name: str, *, leave_running: bool) -> None:
        words = ["--leave-running"] if leave_running else []
        self("checkpoint", "create", *words, container, name)

    def start_from(self, container: str, name: str) -> None:
        self("start", "--checkpoint", name, container)

    def __call__(self, *words: str, seconds: float = 60.0) -> str:
        """stdout without the last line break. Raises `ClientError`."""
        try:
            done = subprocess.run(
                [*self.base, *words], env=self.env, capture_output=True, text=True, errors="replace",
                stdin=subprocess.DEVNULL, timeout=seconds, check=False, cwd=self.node.path,
            )  # fmt: skip
        except subprocess.TimeoutExpired as late:
            raise ClientError(words, 124, f"no answer within {seconds:g} s: {late.stderr!r}") from late
        if done.returncode:
            raise ClientError(words, done.returncode, done.stderr.strip())
        return done.stdout.strip()

    def run(
        self, *workload: str, gpu: Sequence[str] = GPU, options: Sequence[str] = (), runtime: str = "",
        image: str = IMAGE, verb: Sequence[str] = ("run", "-d"),
    ) -> Started:  # fmt: skip
        """A container that runs in the background, with `gpu` as the words that ask for one."""
        name = self.node.name()
        started = Started(self, name)
        self._made.append(started)
        words = [*verb, "--name", name, "--runtime", runtime or self.RUNTIME, "--network", "none"]
        self(*words, *gpu, *options, image, *workload)
        return started


class Nerdctl(Client):
    NAME = "nerdctl"
    RUNTIME = "diapause-runc"

    def start(self) -> Self:
        daemon = self.node.daemon
        self.base = [
            str(component("nerdctl-2.3") / "bin/nerdctl"), "--address", str(daemon.address), "--namespace",
            daemon.namespace, "--data-root", str(self.node.path / "nerdctl"), "--cgroup-manager", "cgroupfs",
            "--cdi-spec-dirs", str(self.node.settings.cdi), "--cni-netconfpath", str(self.node.path / "cni"),
        ]  # fmt: skip
        return self

    @property
    def version(self) -> str:
        return self("--version").split()[-1].removeprefix("v")


class Docker(Client):
    """With a dockerd of its own, configured by `diapause runtime install`."""

    NAME = "docker"
    RUNTIME = "diapause"
    COMPONENT = "docker-27"

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self._daemon: subprocess.Popen[bytes] | None = None
        self._foreign = [path for path in RUN if path.exists()]

    @property
    def config(self) -> Path:
        return self.node.path / "daemon.json"

    def start(self) -> Self:
        programs = component(self.COMPONENT) / "bin"
        path = self.node.path
        socket = f"unix://{path}/docker.sock"
        self.base = [str(programs / "docker"), "--host", socket]
        if nvidia := toolkit():  # its hook in dockerd's PATH is what makes `--gpus` known
            self.env["PATH"] = f"{nvidia}:{self.env['PATH']}"
        self._configure()
        namespace = self.node.daemon.namespace
        argv = [
            str(programs / "dockerd"), "--config-file", str(self.config), "--host", socket,
            "--containerd", str(self.node.daemon.address), "--containerd-namespace", namespace,
            "--containerd-plugins-namespace", f"{namespace}-plugins", "--data-root", str(path / "docker"),
            "--exec-root", str(path / "docker-exec"), "--pidfile", str(path / "docker.pid"),
        ]  # fmt: skip
        with (path / "dockerd.log").open("ab") as log:
            self._daemon = subprocess.Popen(
                argv, cwd=path, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        until(self._ready, f"answer from dockerd (log: {path}/dockerd.log)", seconds=30)
        archive = path / "image.tar"
        images.archive(archive, IMAGE, workloads.layer(self.node.daemon.tools))
        self("load", "--input", str(archive), seconds=300)
        archive.unlink()
        return self

    def _configure(self) -> None:
        """No networks of its own: this machine may have no iptables, and a dockerd that needs the bridge."""
        config = {
            "bridge": "none", "iptables": False, "ip6tables": False, "userland-proxy": False,
            "exec-opts": ["native.cgroupdriver=cgroupfs"], "cdi-spec-dirs": [str(self.node.settings.cdi)],
            "cgroup-parent": f"/{self.node.daemon.namespace}",
        }  # fmt: skip
        self.config.write_text(json.dumps(config))
        argv = [str(install().cli), "runtime", "install", "--engine", "docker", "--config", str(self.config)]
        argv += ["--engine-version", f"{self.COMPONENT.removeprefix('docker-')}.0"]
        env = {**os.environ, **self.node.settings.env}
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr

    def _ready(self) -> bool:
        assert self._daemon is not None
        if self._daemon.poll() is not None:
            log = (self.node.path / "dockerd.log").read_text()
            raise RuntimeError(f"dockerd ended with {self._daemon.returncode}: {log[-2000:]}")
        argv = [*self.base, "version"]
        return (
            subprocess.run(argv, env=self.env, capture_output=True, timeout=20, check=False).returncode == 0
        )

    def close(self) -> None:
        if self._daemon is None:
            return
        self.clean()
        self._daemon.terminate()
        try:
            self._daemon.wait(30)
        except subprocess.TimeoutExpired:
            self._daemon.kill()
            self._daemon.wait(20)
        for path in RUN:
            if path not in self._foreign:
                with contextlib.suppress(OSError):
                    path.rmdir()

    @property
    def version(self) -> str:
        return self("version", "--format", "{{.Server.Version}}")


class Docker28(Docker):
    """The first series that wants the container's process before containerd's shim has restored it."""

    NAME = "docker 28"
    COMPONENT = "docker-28"


class Podman(Client):
    """Without containerd: its own storage, conmon, and the runtime by its drop-in."""

    NAME = "podman"
    RUNTIME = "diapause"
    # Its defaults raise limits, for which root needs CAP_SYS_RESOURCE; not every machine leaves it that.
    LIMITS = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024")

    def start(self) -> Self:
        base = self.node.path / "podman"
        for name in ("home/.config/containers", "run", "cni"):
            (base / name).mkdir(parents=True, exist_ok=True)
        accept = {"default": [{"type": "insecureAcceptAnything"}]}
        (base / "home/.config/containers/policy.json").write_text(json.dumps(accept))
        programs = component("podman") / "bin"
        self.env |= {"HOME": str(base / "home"), "XDG_RUNTIME_DIR": str(base / "run")}
        self.env["CONTAINERS_CONF"] = str(self._configure(base, programs))
        self.base = [
            # where this version looks for specifications, it cannot be told
            "unshare", "--mount", "--propagation", "slave", "sh", "-c",
            'mkdir -p /etc/cdi && mount --bind "$0" /etc/cdi && exec "$@"', str(self.node.settings.cdi),
            str(programs / "podman"), "--root", str(base / "storage"), "--runroot", str(base / "runroot"),
            "--tmpdir", str(base / "tmp"), "--storage-driver", "vfs", "--cni-config-dir", str(base / "cni"),
        ]  # fmt: skip
        archive = base / "image.tar"
        images.archive(archive, f"localhost/{IMAGE}", workloads.layer(self.node.daemon.tools))
        self("load", "--input", str(archive), seconds=300)
        archive.unlink()
        return self

    def _configure(self, base: Path, programs: Path) -> Path:
        """podman gives runtimes an environment of its own, so the settings of this test go into a program."""
        runtime = base / "diapause-runc"
        env = {**self.node.settings.env, "PATH": self.env["PATH"]}
        exports = "".join(f"export {name}='{value}'\n" for name, value in env.items())
        runtime.write_text(f'#!/bin/sh\n{exports}exec {install().runtime} "$@"\n')
        runtime.chmod(0o755)
        config = base / "containers.conf"
        argv = [str(install().cli), "runtime", "install", "--engine", "podman", "--config", str(config)]
        argv += ["--runtime-path", str(runtime)]
        env = {**os.environ, **self.node.settings.env}
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        config.write_text(
            f'{config.read_text()}  runc = ["{self.node.daemon.tools.find("runc")}"]\n'
            f'[engine]\nconmon_path = ["{programs / "conmon"}"]\nruntime = "runc"\nnetwork_backend = "cni"\n'
            'cgroup_manager = "cgroupfs"\nevents_logger = "file"\n'
        )
        return config

    def close(self) -> None:
        super().close()
        with contextlib.suppress(OSError):  # others' files are in it, or it was there before
            Path("/etc/cdi").rmdir()

    @property
    def version(self) -> str:
        return self("--version").split()[-1]

    def run(
        self, *workload: str, gpu: Sequence[str] = GPU, options: Sequence[str] = (), runtime: str = "",
        image: str = f"localhost/{IMAGE}", verb: Sequence[str] = ("run", "-d"),
    ) -> Started:  # fmt: skip
        """`--runtime` is an option of podman itself, and stays with the container."""
        name = self.node.name()
        started = Started(self, name)
        self._made.append(started)
        words = ["--runtime", runtime or self.RUNTIME, *verb, "--name", name, "--network", "none"]
        self(*words, *self.LIMITS, *gpu, *options, image, *workload)
        return started

    def checkpoint(self, container: str, name: str, *, leave_running: bool) -> None:
        """podman keeps one checkpoint a container, without a name; `name` is a file that gets a copy."""
        words = ["--leave-running"] if leave_running else []
        self("container", "checkpoint", *words, *(["--export", name] if "/" in name else []), container)

    def start_from(self, container: str, name: str) -> None:
        """`name` as for checkpoint: a file becomes a new container of that name."""
        self("container", "restore", *(["--import", name, "--name"] if "/" in name else []), container)


@dataclass(eq=False)
class Started:
    """A container of a client."""

    client: Client
    name: str
    _seen: str = field(default="", repr=False)

    def inspect(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.client("inspect", self.name))[0]
        return found

    def status(self) -> str:
        """created, running, paused, exited."""
        return str(self.inspect()["State"]["Status"])

    def pid(self) -> int:
        return int(self.inspect()["State"]["Pid"])

    @property
    def id(self) -> str:
        return str(self.inspect()["Id"])

    @property
    def output(self) -> Output:
        return Output(lambda: self.client("logs", self.name) + "\n")

    def goes_on(self, *, by: int = 5) -> int:
        """Assert that it runs, that it prints `by` more steps, and that its log has none twice and no gap."""
        until(lambda: self.status() == "running", f"{self.name} running")
        last = self.output.wait_step(self.output.step() + by)
        steps = self.output.steps()
        assert all(b == a + 1 for a, b in pairwise(steps)), f"a gap in {steps}"
        return last

    def checkpoint(self, name: str, *, leave_running: bool = False) -> None:
        self.client.checkpoint(self.name, name, leave_running=leave_running)
        if not leave_running:
            until(lambda: self.status() == "exited", f"end of {self.name}")

    def start_from(self, checkpoint: str) -> None:
        self.client.start_from(self.name, checkpoint)

    def remove(self) -> None:
        try:
            self.client("rm", "--force", self.name)
        except ClientError:  # it never came to be
            pass
