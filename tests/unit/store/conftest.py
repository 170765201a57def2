"""A snapshot on disk, and its document."""

from pathlib import Path
from typing import Any

import pytest

from diapause.runtime.store import manifest, snapshot

DIGEST = "sha256:" + "ab" * 32


def document(**changes: Any) -> dict[str, Any]:
    """The fields of a manifest without files."""
    fields: dict[str, Any] = {
        "magic": manifest.MAGIC,
        "version": manifest.VERSION,
        "features": {"required": [], "optional": ["x-of-tomorrow"]},
        "id": "c1",
        "created": "2026-01-02T03:04:05Z",
        "engine": "driver",
        "evacuated": "driver",
        "software": True,
        "spec_digest": DIGEST,
        "driver": {"version": "softgpu-1", "digest": DIGEST, "size": 12},
        "library": None,
        "targets": ["/usr/lib/libcuda.so.1"],
        "tools": {"diapause": "0", "runc": "runc version 1.5.3", "criu": "4.2.1", "kernel": "6.18"},
        "processes": [{"pid": 1, "comm": "train", "gpu": True, "stopped": False}],
        "flags": ["file-locks"],
        "phases": [{"name": "lock", "ms": 0.2, "bytes": 0}],
        "files": [],
    }
    return {**fields, **changes}


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A sound snapshot: two files and a manifest, and a log that is no part of it."""
    path = tmp_path / "image"
    path.mkdir(mode=0o700)
    (path / "pages-1.img").write_bytes(b"memory" * 1000)
    (path / "core-1.img").write_bytes(b"registers")
    (path / "dump.log").write_text("criu says")
    entries = manifest.file_entries(snapshot.parts(str(path), {}))
    snapshot.commit(str(path), manifest.Manifest(document(files=entries)), sync=False)
    return path


@pytest.fixture(scope="session", name="document")
def _document() -> Any:
    """The function that makes the fields of a manifest."""
    return document
