"""Image directories and a local store that the command line finds."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from diapause.runtime.cli.main import main
from diapause.runtime.store import manifest, snapshot
from diapause.runtime.store.local import Local

from ... import gpu_snapshots


class Shell:
    """Types commands; `out` and `err` are of the last one."""

    def __init__(self, tmp_path: Path) -> None:
        self.path = tmp_path
        self.store = Local(str(tmp_path / "store"))

    def __call__(self, *args: str, code: int = 0) -> str:
        result: Result = CliRunner().invoke(main, ["snapshot", *args])
        assert result.exit_code == code, result.output
        assert "Traceback" not in result.output
        self.out, self.err = result.stdout, result.stderr
        return result.stdout

    def json(self, *args: str, code: int = 0) -> Any:
        return json.loads(self(*args, "--json", code=code))

    def image(self, name: str) -> Path:
        """A directory with what CRIU wrote."""
        image = self.path / name
        image.mkdir()
        (image / "pages-1.img").write_bytes(b"memory" * 1000)
        (image / "core-1.img").write_bytes(b"registers")
        (image / "dump.log").write_text("criu says")
        return image


def fields(**changes: Any) -> dict[str, Any]:
    """Those of a manifest without files."""
    return {
        "magic": manifest.MAGIC, "version": manifest.VERSION, "features": {"required": [], "optional": []},
        "id": "c1", "created": "2026-01-02T03:04:05Z", "engine": "intercept", "evacuated": "intercept",
        "software": False, "spec_digest": "",
        "driver": {"version": "580.159.03", "digest": "sha256:0", "size": 12}, "library": None, "targets": [],
        "tools": {"diapause": "0", "runc": "runc version 1.5.3"},
        "processes": [
            {"pid": 1, "comm": "train", "gpu": True, "stopped": False},
            {"pid": 7, "comm": "worker\x1b[2J", "gpu": True, "stopped": True},
            {"pid": 9, "comm": "sh", "gpu": False, "stopped": False},
        ],
        "flags": [],
        "phases": [
            {"name": "quiesce", "ms": 2, "bytes": 0, "start_ms": 0},
            {"name": "copy", "ms": 40, "bytes": 8 << 20, "start_ms": 2},
            {"name": "criu-dump", "ms": 60, "bytes": 6009, "start_ms": 10},
        ],
        "files": [],
        **changes,
    }  # fmt: skip


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setenv("DIAPAUSE_SNAPSHOT_STORE_DIR", str(tmp_path / "store"))
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path)


@pytest.fixture
def plain(shell: Shell) -> Path:
    """An image without GPU data."""
    image = shell.image("plain")
    entries = manifest.file_entries(snapshot.parts(str(image), {}))
    snapshot.commit(str(image), manifest.Manifest(fields(files=entries)), sync=False)
    return image


@pytest.fixture
def whole(shell: Shell) -> Path:
    """An image with its GPU data."""
    image = shell.image("whole")
    gpu_snapshots.embedded(image, fields())
    return image


@pytest.fixture
def split(shell: Shell) -> Path:
    """An image whose GPU data is in the local store as c1-x."""
    image = shell.image("split")
    gpu_snapshots.local(image, fields(), shell.store, "c1-x")
    return image


@pytest.fixture
def cut_off(shell: Shell) -> Callable[[str], Path]:
    """Makes what a writer leaves that died."""

    def make(name: str) -> Path:
        path = Path(shell.store.disk, f".part-{name}")
        path.mkdir(parents=True, mode=0o700)
        os.chmod(shell.store.disk, 0o700)
        (path / "diapause-gpu-0.img").write_bytes(b"half" * 4096)
        return path

    return make
