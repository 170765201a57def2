"""A container on a host where runc, criu, the driver and the freezer are fakes, but the process is real."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from diapause.runtime.container import Container
from diapause.runtime.engine import api
from diapause.runtime.engine.request import CheckpointRequest, RestoreRequest, Settings
from diapause.runtime.linux.deadline import Deadline
from diapause.runtime.linux.events import Events
from diapause.runtime.linux.locks import Lock

FAKES = Path(__file__).parents[2] / "fakes"
DIGEST = "sha256:" + "ab" * 32
CRIU = "#!/bin/sh\necho Version: {}\n"


class Host:
    """`container` is a sleeping process that holds /dev/null, which counts as the GPU."""

    def __init__(self, path: Path, run_dir: Path) -> None:
        self.path = path
        self.root = path / "runc"
        self.bin = path / "bin"
        self.native = path / "native" / "bin"
        self.driver = path / "driver"
        self.cgroup = path / "cgroup"
        self.bundle = path / "bundle"
        self.image = path / "image"
        for folder in (self.root, self.bin, self.native, self.driver, self.cgroup, self.bundle):
            folder.mkdir(parents=True)
        shutil.copy2(FAKES / "engine_runc", self.bin / "runc")
        shutil.copy2(FAKES / "engine_cudactl", self.native / "diapause-cudactl")
        (self.native / "diapause-hook").write_text("#!/bin/false\n")
        self.criu("4.2.1")
        (self.driver / "libcuda.so.1").write_text("a driver")
        (self.bundle / "config.json").write_text("{}")
        self.container = Container(str(self.root), "c1")
        self.container.make_directory()
        self.process: subprocess.Popen[bytes] | None = None
        self.helpers: list[subprocess.Popen[bytes]] = []
        self.engine = "driver"
        self.explicit = False
        self.gpu = True
        self.freezer(frozen=False)
        (self.root / "on-restore").write_text(str(self.driver))

    def criu(self, version: str) -> None:
        (self.bin / "criu").write_text(CRIU.format(version))
        (self.bin / "criu").chmod(0o755)

    def freezer(self, *, frozen: bool) -> None:
        (self.cgroup / "freezer.state").write_text("FROZEN" if frozen else "THAWED")
        (self.cgroup / "freezer.self_freezing").write_text("1\n" if frozen else "0\n")

    @property
    def frozen(self) -> bool:
        return (self.cgroup / "freezer.state").read_text().strip() == "FROZEN"

    def start(self, *program: str, gpu: bool = True) -> int:
        """Start the container's process; the driver knows it as running."""
        self.gpu = gpu
        stdin = subprocess.DEVNULL if gpu else subprocess.PIPE
        self.process = subprocess.Popen(
            program or ("sleep", "60"), stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        pid = self.process.pid
        if program:
            assert self.process.stdout is not None
            assert self.process.stdout.readline() == b"ready\n"
        (self.cgroup / "cgroup.procs").write_text(f"{pid}\n")
        if gpu:
            (self.driver / f"state-{pid}").write_text("0")
        start = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
        state = {
            "init_process_pid": pid,
            "init_process_start": int(start),
            "cgroup_paths": {"freezer": str(self.cgroup)},
            "config": {"labels": [f"org.criu.config={self.container.directory}/criu.conf"]},
        }
        (self.root / "template.json").write_text(json.dumps(state))
        (self.root / "c1").mkdir(exist_ok=True)
        (self.root / "c1" / "state.json").write_text(json.dumps(state))
        self.container.store_state(self.state)
        return pid

    def start_library(self, *arguments: str) -> int:
        """Start a process with our library, which answers, and a controller for its GPU."""
        self.engine = "intercept"
        self.start_gpud()
        return self.start(sys.executable, str(FAKES / "engine_library.py"), *arguments)

    def start_gpud(self) -> subprocess.Popen[bytes]:
        program = [sys.executable, str(FAKES / "engine_gpud.py"), str(self.driver)]
        helper = subprocess.Popen(program, stdout=subprocess.PIPE)
        self.helpers.append(helper)
        assert helper.stdout is not None
        assert helper.stdout.readline() == b"ready\n"
        return helper

    @property
    def gpud_calls(self) -> list[str]:
        """What the controller was asked for, in order, without questions."""
        path = self.driver / "gpud-calls"
        calls = path.read_text().split() if path.exists() else []
        return [call for call in calls if call not in ("hello", "held")]

    def gpud_fails(self, *lines: str) -> None:
        (self.driver / "gpud-faults").write_text("\n".join(lines) + "\n")

    @property
    def state(self) -> dict[str, Any]:
        libcuda = {"path": str(self.driver / "libcuda.so.1"), "digest": DIGEST, "size": 8}
        return {
            "version": 1, "root": str(self.root), "id": "c1", "bundle": str(self.bundle),
            "engine": self.engine, "explicit": self.explicit,
            "software": True, "driver": {"version": "softgpu-1", "libcuda": libcuda}, "library": None,
            "targets": [], "devices": [{"path": "/dev/diapause-gpu0", "major": 1, "minor": 3}],
            "criu_config": "", "pid": None, "start_time": None,
        }  # fmt: skip

    def request(self, **changes: Any) -> dict[str, Any]:
        paths = ["--image-path", str(self.image), "--work-path", str(self.bundle)]
        fields: dict[str, Any] = {
            "runc": str(self.bin / "runc"),
            "global_args": ["--root", str(self.root)],
            "verb_args": [*paths, *changes.pop("flags", []), "c1"],
            "root": str(self.root),
            "id": "c1",
            "image_path": str(self.image),
            "work_path": str(self.bundle),
            "settings": Settings(lock_timeout=0.2, checkpoint_timeout=1, restore_timeout=1),
            "state": self.state,
        }
        return {**fields, **changes}

    def checkpoint(self, *, leave_running: bool = False, **changes: Any) -> int:
        flags = [*(["--leave-running"] if leave_running else []), *changes.pop("flags", [])]
        return api.checkpoint(
            CheckpointRequest(**self.request(flags=flags, **changes), leave_running=leave_running)
        )

    def restore(self, *, detach: bool = True, **changes: Any) -> int:
        flags = [*(["-d"] if detach else []), *changes.pop("flags", [])]
        self.container.make_directory()
        self.container.store_state(self.state)
        request = self.request(flags=flags, **changes)
        return api.restore(RestoreRequest(**request, bundle=str(self.bundle), detach=detach))

    def recover(self) -> None:
        api.recover(str(self.root), "c1")

    def in_a_caller_that_dies(self, call: Callable[[], object]) -> None:
        """Make a call that kills the process which makes it, and wait until its engine has died as well."""
        pid = os.fork()
        if pid == 0:
            try:
                call()
            finally:
                os._exit(1)
        assert os.waitpid(pid, 0)[1] == signal.SIGKILL
        with Events([]) as events:  # the engine dies a moment after it killed its caller
            assert events.until(self._is_free, Deadline.after(5), tick=0.01)

    def _is_free(self) -> bool:
        lock = Lock.try_take(f"{self.container.directory}/lock")
        if lock is not None:
            lock.close()
        return lock is not None

    def fails(self, phase: str) -> None:
        """Let the fake runc fail at a phase."""
        (self.root / "faults").write_text(phase + "\n")

    def driver_fails(self, *lines: str) -> None:
        (self.driver / "faults").write_text("\n".join(lines) + "\n")

    @property
    def driver_calls(self) -> list[str]:
        """The verbs that changed something, in order."""
        path = self.driver / "calls"
        words = [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []
        return [word for word in words if word not in ("state", "restore-tid")]

    @property
    def runc_calls(self) -> list[list[str]]:
        path = self.root / "calls"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def pid(self) -> int:
        """The first process, as the runtime knows it."""
        state = json.loads((self.root / "c1" / "state.json").read_text())
        return int(state["init_process_pid"])

    def driver_state(self, pid: int) -> int:
        return int((self.driver / f"state-{pid}").read_text())

    def goes_on(self, pid: int) -> bool:
        """Whether the process lives, runs, and nobody traces it."""
        fields = Path(f"/proc/{pid}/status").read_text()
        states = [
            line.split()[1] for line in fields.splitlines() if line.startswith(("State:", "TracerPid:"))
        ]
        return states in (["S", "0"], ["R", "0"])  # R: woken, on a busy machine

    @property
    def journaled(self) -> bool:
        return self.container.has_journal

    @property
    def committed(self) -> bool:
        return (self.image / "diapause.json").exists()

    def close(self) -> None:
        procs = self.cgroup / "cgroup.procs"
        for pid in procs.read_text().split() if procs.exists() else []:
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                pass
        for process in [*([self.process] if self.process else []), *self.helpers]:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()


@pytest.fixture
def engine_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """A host; its run directory has a short path, because of the socket in it."""
    with tempfile.TemporaryDirectory(prefix="dp-") as run_dir:
        monkeypatch.setenv("DIAPAUSE_RUN_DIR", run_dir)
        monkeypatch.setenv("DIAPAUSE_STATE_DIR", str(tmp_path / "state"))
        monkeypatch.setenv("DIAPAUSE_NATIVE_DIR", str(tmp_path / "native"))
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
        host = Host(tmp_path, Path(run_dir))
        try:
            yield host
        finally:
            host.close()
