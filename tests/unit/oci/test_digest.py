import hashlib
import os
from pathlib import Path

import pytest

from diapause.runtime.oci import digest


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count as unchanged for long."""
    monkeypatch.setattr(digest, "SETTLED", 0)


@pytest.mark.usefixtures("settled")
def test_a_digest_is_computed_once(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = host / "file"
    path.write_bytes(b"content")
    first = digest.of_file(str(path))
    assert (first.digest, first.size) == (f"sha256:{hashlib.sha256(b'content').hexdigest()}", 7)

    monkeypatch.setattr(digest, "_compute", lambda _: pytest.fail("read again"))
    assert digest.of_file(str(path)).digest == first.digest


def test_of_a_file_that_changed_just_now_nothing_is_remembered(
    host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two writes within one tick have one ctime."""
    monkeypatch.setattr(digest, "SETTLED", 10**12)
    (host / "file").write_bytes(b"content")
    digest.of_file(str(host / "file"))
    assert not (host / "state" / "digests").exists()


def test_same_size_and_mtime_do_not_deceive(host: Path) -> None:
    path = host / "file"
    path.write_bytes(b"content")
    before = path.stat()
    first = digest.of_file(str(path)).digest

    path.write_bytes(b"CONTENT")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert digest.of_file(str(path)).digest != first


def test_a_memory_that_cannot_be_written_costs_time_only(host: Path) -> None:
    (host / "state").write_text("no directory")
    (host / "file").write_bytes(b"content")
    assert digest.of_file(str(host / "file")).size == 7


@pytest.mark.usefixtures("settled")
def test_a_damaged_memory_is_ignored(host: Path) -> None:
    path = host / "file"
    path.write_bytes(b"content")
    first = digest.of_file(str(path)).digest
    (memory,) = (host / "state" / "digests").iterdir()
    memory.write_text("garbage")
    assert digest.of_file(str(path)).digest == first
