"""Every test has a host of its own: run, state and native directories below its temporary directory."""

import copy
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[2]
FAKES = REPOSITORY / "tests" / "fakes"
NATIVE = REPOSITORY / "build" / "editable" / "diapause" / "native"

SPEC: dict[str, Any] = {
    "ociVersion": "1.2.0",
    "process": {
        "terminal": False,
        "user": {"uid": 0, "gid": 0},
        "args": ["sleep", "1000"],
        "env": ["PATH=/bin", "LD_LIBRARY_PATH=/usr/local/nvidia/lib64"],
        "cwd": "/",
    },
    "root": {"path": "rootfs"},
    "hostname": "test",
    "mounts": [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
    ],
    "linux": {"namespaces": [{"type": "pid"}, {"type": "mount"}], "x-of-tomorrow": {"kept": [1, 2.5, None]}},
    "x-unknown": {"kept": True},
}


@pytest.fixture(autouse=True)
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directories of this test's host."""
    for name in [name for name in os.environ if name.startswith("DIAPAUSE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("DIAPAUSE_RUN_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("DIAPAUSE_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("DIAPAUSE_CDI_SPEC_DIRS", str(tmp_path / "cdi"))
    monkeypatch.setenv("DIAPAUSE_DRIVER_LIBCUDA", str(tmp_path / "driver" / "libcuda.so.1"))
    (tmp_path / "cdi").mkdir()
    return tmp_path


@pytest.fixture
def native(host: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A native directory whose libraries are files with known content."""
    directory = host / "native"
    for name, content in (
        ("lib/libdiapause-cuda.so", b"\x7fELF\x02 interception"),
        ("softgpu/libcuda.so.1", b"\x7fELF\x02 diapause_softgpu_version"),
        ("softgpu/libnvidia-ml.so.1", b"\x7fELF\x02 nvml"),
    ):
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(content)
    monkeypatch.setenv("DIAPAUSE_NATIVE_DIR", str(directory))
    return directory


@pytest.fixture
def spec() -> dict[str, Any]:
    """A specification that asks for no GPU."""
    return copy.deepcopy(SPEC)


@pytest.fixture
def libcuda(host: Path) -> Path:
    """The host's libcuda as a driver installs it: libcuda.so.1 is a link."""
    directory = host / "driver"
    directory.mkdir()
    (directory / "libcuda.so.580.159.03").write_bytes(b"\x7fELF\x02 the real one")
    (directory / "libcuda.so.1").symlink_to("libcuda.so.580.159.03")
    return directory / "libcuda.so.1"


@pytest.fixture
def gpu_spec(spec: dict[str, Any], libcuda: Path) -> dict[str, Any]:
    """The same after a container engine applied CDI edits."""
    spec = copy.deepcopy(spec)
    for name in ("libcuda.so.580.159.03", "libcuda.so.1"):
        spec["mounts"].append(
            {
                "destination": f"/usr/lib/x86_64-linux-gnu/{name}",
                "type": "bind",
                "source": str(libcuda.parent / name),
                "options": ["ro", "nosuid", "nodev", "rbind"],
            }
        )
    spec["linux"]["devices"] = [{"path": "/dev/nvidia0", "type": "c", "major": 1, "minor": 3}]
    return spec


class Bundle:
    """A bundle on disk."""

    def __init__(self, path: Path, spec: dict[str, Any]) -> None:
        self.path = path
        self.config = path / "config.json"
        (path / "rootfs").mkdir(parents=True)
        self.config.write_text(json.dumps(spec, indent=1), encoding="utf-8")

    @property
    def spec(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads(self.config.read_text(encoding="utf-8"))
        return data


@pytest.fixture
def bundle(host: Path, spec: dict[str, Any]) -> Bundle:
    return Bundle(host / "bundle", spec)


@pytest.fixture
def gpu_bundle(host: Path, gpu_spec: dict[str, Any], native: Path) -> Bundle:
    return Bundle(host / "gpu-bundle", gpu_spec)


class Installation:
    """An environment's bin directory with the C programs, the console script and a fake runc in PATH."""

    def __init__(self, host: Path) -> None:
        self.bin = host / "bin"
        self.bin.mkdir()
        self.record = host / "record.json"
        self.log = host / "log"
        for name in ("diapause-runc", "diapause-hook"):
            if not (NATIVE / "bin" / name).exists():
                pytest.skip(f"{name} is not built: make native")
            shutil.copy2(NATIVE / "bin" / name, self.bin / name)
        self.script = self.bin / "diapause-oci"
        self.script.write_text(f"#!{sys.executable}\nraise SystemExit('not run')\n", encoding="utf-8")
        path = host / "path"
        path.mkdir()
        shutil.copy2(FAKES / "runc", path / "runc")
        self.runc = path / "runc"
        self.env = {**os.environ, "PATH": f"{path}:/usr/bin:/bin", "FAKE_RUNC_RECORD": str(self.record)}

    def run(self, *argv: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.bin / "diapause-runc"), *argv],
            env=self.env, cwd=cwd, text=True, capture_output=True, timeout=30, check=False,
        )  # fmt: skip

    @property
    def seen(self) -> dict[str, Any]:
        """How the fake runc was called."""
        data: dict[str, Any] = json.loads(self.record.read_text(encoding="utf-8"))
        return data

    @property
    def errors(self) -> list[str]:
        """The messages of level error in the log, which holds nothing but JSON."""
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        return [entry["msg"] for entry in map(json.loads, lines) if entry["level"] == "error"]


@pytest.fixture
def installation(host: Path) -> Installation:
    return Installation(host)
