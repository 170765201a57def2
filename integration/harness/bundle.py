"""A container straight on the low-level runtime, without containerd: quick, and every flag is ours."""

import itertools
import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from integration.harness import cgroup, image, proc, workloads
from integration.harness.diapause import REAL_GPU, Settings
from integration.harness.output import Output, Pipe
from integration.harness.tools import Toolset, install
from integration.harness.wait import TimedOut, until

_numbers = itertools.count(1)

_MOUNTS = [
    {"destination": "/proc", "type": "proc", "source": "proc"},
    {
        "destination": "/dev",
        "type": "tmpfs",
        "source": "tmpfs",
        "options": ["nosuid", "mode=755", "size=65536k"],
    },
    {
        "destination": "/dev/pts",
        "type": "devpts",
        "source": "devpts",
        "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"],
    },
    {
        "destination": "/dev/shm",
        "type": "tmpfs",
        "source": "shm",
        "options": ["nosuid", "noexec", "nodev", "mode=1777"],
    },
]


def spec(argv: Sequence[str], *, env: Mapping[str, str], annotations: Mapping[str, str]) -> dict[str, object]:
    """A small config.json: own pid, ipc, uts and mount namespaces, the host's network."""
    return {
        "ociVersion": "1.0.2",
        "process": {
            "terminal": False,
            "user": {"uid": 0, "gid": 0},
            "args": list(argv),
            "cwd": "/",
            "noNewPrivileges": True,
            "env": ["PATH=/bin:/opt", *(f"{k}={v}" for k, v in env.items())],
            "capabilities": {k: ["CAP_KILL", "CAP_CHOWN"] for k in ("bounding", "effective", "permitted")},
        },
        "root": {"path": "rootfs", "readonly": False},
        "hostname": "test",
        "mounts": _MOUNTS,
        "annotations": dict(annotations),
        "linux": {
            "namespaces": [{"type": t} for t in ("pid", "ipc", "uts", "mount")],
            "resources": {"devices": [{"allow": False, "access": "rwm"}]},
        },
    }


class RuncError(AssertionError):
    """The runtime failed; the text is its stderr."""

    def __init__(self, argv: Sequence[str], status: int, stderr: str) -> None:
        super().__init__(f"{' '.join(argv)}: exit status {status}: {stderr}")
        self.status = status
        self.stderr = stderr

    @property
    def first_line(self) -> str:
        return self.stderr.splitlines()[0] if self.stderr else ""


class Runtime:
    """One runtime binary with its own root and, for Diapause, its own settings."""

    def __init__(self, base: Path, tools: Toolset, *, program: Path | None = None) -> None:
        base.mkdir(exist_ok=True)
        self.base = base
        self.tools = tools
        self.settings = Settings.make(base, tools)
        self.program = program or install().runtime
        self.env = {"PATH": tools.path, "TMPDIR": str(base / "tmp"), "LC_ALL": "C", **self.settings.env}
        (base / "tmp").mkdir(exist_ok=True)
        self.root = base / "root"
        self.bundles: list[Bundle] = []

    def argv(self, *args: str) -> list[str]:
        return [str(self.program), "--root", str(self.root), *args]

    def __call__(
        self,
        *args: str,
        seconds: float = 60.0,
        env: Mapping[str, str] | None = None,
        stdout: int = subprocess.PIPE,
        cwd: Path | None = None,
    ) -> str:
        """Run one verb; return its stdout. Raises `RuncError`."""
        argv = self.argv(*args)
        try:
            done = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=subprocess.PIPE,
                text=True,
                env={**self.env, **(env or {})},
                timeout=seconds,
                check=False,
                cwd=cwd,
            )
        except subprocess.TimeoutExpired as late:
            raise RuncError(argv, 124, f"no answer within {seconds:g} s: {late.stderr!r}") from late
        if done.returncode:
            raise RuncError(argv, done.returncode, done.stderr)
        return done.stdout or ""

    def start(self, *args: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.argv(*args),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**self.env, **(env or {})},
        )

    def bundle(
        self,
        *workload: str,
        engine: str = "driver",
        env: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        layer: bytes = b"",
    ) -> "Bundle":
        """A new bundle, not yet started; its rootfs is the workloads' layer unless one is given."""
        layer = layer or workloads.layer(self.tools)
        made = Bundle(self, f"b{next(_numbers)}", workload, engine, env or {}, annotations or {}, layer)
        self.bundles.append(made)
        return made

    def clean(self) -> None:
        while self.bundles:
            self.bundles.pop().remove()

    def footprint(self) -> dict[str, list[str]]:
        """Everything an operation could leave behind; a controller stays for the next one on purpose."""
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
        return {
            "runc": sorted(os.listdir(self.root)) if self.root.exists() else [],
            "registered": self.settings.registered(),
            "mounts": sorted(
                t for t in (x.split()[4] for x in lines) if t.startswith((f"{self.base}/", "/tmp/.criu"))
            ),
            "temporary": sorted(os.listdir(self.base / "tmp")),
            "processes": sorted(
                line
                for line in map(proc.cmdline, proc.pids())
                if f"{self.base}/" in line and "diapause.runtime.gpud" not in line
            ),
        }


class Bundle:
    """One container: its folder, its rootfs, its output."""

    def __init__(
        self,
        runtime: Runtime,
        id: str,
        workload: Sequence[str],
        engine: str,
        env: Mapping[str, str],
        annotations: Mapping[str, str],
        layer: bytes,
    ) -> None:
        self.runtime = runtime
        self.id = id
        self.path = runtime.base / "b" / id
        self._pipe: Pipe | None = None
        wanted = dict(annotations)
        if engine:
            wanted |= {"diapause.dev/gpu": engine, "diapause.dev/gpu-enabled": "true"}
        self.path.mkdir(parents=True)
        image.unpack(layer, self.path / "rootfs")
        self.config = self.path / "config.json"
        self.spec = spec(workload, env=env, annotations=wanted)
        linux = self.spec["linux"]
        assert isinstance(linux, dict)
        linux["cgroupsPath"] = f"/{runtime.base.parent.name}-{runtime.base.name}-{id}"
        self.write_spec()

    def write_spec(self) -> None:
        """Write config.json anew, as a client does before every create and restore."""
        self.config.write_text(json.dumps(self.spec, indent=1))

    @property
    def output(self) -> Output:
        assert self._pipe is not None, f"{self.id} was not started"
        return self._pipe.output

    def finished(self) -> str:
        """Everything it printed since its last start, once no process holds its end any more."""
        assert self._pipe is not None, f"{self.id} was not started"
        return self._pipe.finished()

    def _launch(self, *args: str, seconds: float = 60.0, env: Mapping[str, str] | None = None) -> None:
        pipe = Pipe()
        argv = self.runtime.argv(*args)
        try:
            done = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=pipe.writer,
                stderr=pipe.writer,
                timeout=seconds,
                check=False,
                env={**self.runtime.env, **(env or {})},
            )
        except subprocess.TimeoutExpired as late:
            raise RuncError(argv, 124, f"no answer within {seconds:g} s") from late
        finally:
            pipe.handed_over()
        if done.returncode:
            raise RuncError(argv, done.returncode, pipe.finished())
        self._pipe = pipe

    def create(self) -> "Bundle":
        self._launch("create", "--bundle", str(self.path), self.id)
        return self

    def run(self) -> "Bundle":
        self._launch("run", "-d", "--bundle", str(self.path), self.id)
        return self

    def checkpoint(
        self, image_path: Path, *flags: str, seconds: float = 60.0, env: Mapping[str, str] | None = None
    ) -> None:
        """Checkpoint into a folder; with exit unless `--leave-running` is among the flags."""
        work = image_path.with_name(image_path.name + "-work")
        self.runtime(
            "checkpoint",
            "--image-path",
            str(image_path),
            "--work-path",
            str(work),
            *flags,
            self.id,
            seconds=seconds,
            env=env,
        )

    def restore(
        self,
        image_path: Path,
        *flags: str,
        seconds: float = 60.0,
        id: str = "",
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Restore from a folder, detached, with config.json as the client writes it."""
        self.write_spec()
        self.id = id or self.id
        work = image_path.with_name(image_path.name + "-restore")
        self._launch(
            "restore",
            "-d",
            "--bundle",
            str(self.path),
            "--image-path",
            str(image_path),
            "--work-path",
            str(work),
            *flags,
            self.id,
            seconds=seconds,
            env=env,
        )

    def start_restore(self, image_path: Path) -> "subprocess.Popen[bytes]":
        """Begin a restore and return at once; the container's output is this one's from now on."""
        self.write_spec()
        pipe = Pipe()
        work = image_path.with_name(image_path.name + "-restore")
        started = subprocess.Popen(
            self.runtime.argv("restore", "-d", "--bundle", str(self.path), "--image-path", str(image_path),
                              "--work-path", str(work), self.id),
            stdin=subprocess.DEVNULL, stdout=pipe.writer, stderr=pipe.writer, env=self.runtime.env,
        )  # fmt: skip
        pipe.handed_over()
        self._pipe = pipe
        return started

    def state(self) -> dict[str, object]:
        """`state` as JSON; an empty dict when the runtime does not know the container."""
        try:
            loaded: dict[str, object] = json.loads(self.runtime("state", self.id))
            return loaded
        except RuncError:
            return {}

    def status(self) -> str:
        return str(self.state().get("status", ""))

    def pid(self) -> int:
        return int(str(self.state().get("pid", 0)))

    def frozen(self) -> bool:
        return cgroup.frozen(self.pid())

    def processes(self) -> list[int]:
        pid = self.pid()
        return sorted([pid, *proc.descendants(pid)]) if pid else []

    def goes_on(self, *, by: int = 5, seconds: float = 20.0) -> int:
        """Assert that it runs and prints `by` more right steps; return the last one."""
        assert self.status() == "running", (
            f"{self.id} is {self.status() or 'gone'}: {self.output.text()[-300:]}"
        )
        assert not self.frozen()
        return self.output.wait_step(self.output.step() + by, seconds=seconds)

    def end(self, seconds: float = 15.0) -> bool:
        """Ask it to end by SIGTERM, remove what the runtime knows of it, and say whether it did."""
        pid = self.pid()
        try:
            self.runtime("kill", self.id, "TERM")
            until(lambda: not proc.alive(pid), f"end of {self.id}", seconds=seconds)
            self.runtime("delete", self.id)
        except (RuncError, TimedOut):
            return False
        return True

    def kill_and_delete(self) -> None:
        """Whatever is left of it is gone afterwards, as far as the runtime knows it; the folder stays."""
        if REAL_GPU and self.status() == "running":
            self.end()  # a driver may hang on a restored process that is killed
        pid = self.pid()
        try:
            self.runtime("delete", "-f", self.id)
        except RuncError:
            pass
        if pid:
            until(lambda: not proc.alive(pid), f"end of {self.id}")

    def remove(self) -> None:
        self.kill_and_delete()
        shutil.rmtree(self.path, ignore_errors=True)
