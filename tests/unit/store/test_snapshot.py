"""A snapshot is whole, or says what is wrong with it."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from diapause.runtime.errors import DiapauseError, InvalidArgument, NotFound
from diapause.runtime.store import layout, manifest, snapshot


def code_of(image: Path) -> str:
    with pytest.raises((InvalidArgument, NotFound)) as caught:
        snapshot.verify(str(image))
    return caught.value.code


def test_a_sound_snapshot_is_read(image: Path) -> None:
    found = snapshot.verify(str(image))

    assert [file.name for file in found.files] == ["core-1.img", "pages-1.img"]
    assert found.size == 6009


def test_files_and_manifest_are_private(image: Path) -> None:
    for name in ("diapause.json", "pages-1.img", "core-1.img"):
        assert (image / name).stat().st_mode & 0o777 == 0o600


def test_logs_may_change_afterwards(image: Path) -> None:
    (image / "dump.log").write_text("more")
    (image / "spec.dump").write_text("a client's own file")

    snapshot.verify(str(image))


def test_a_missing_directory(image: Path) -> None:
    assert code_of(image / "none") == "snapshot-missing"


def test_an_empty_directory(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    with pytest.raises(NotFound, match="empty") as caught:
        snapshot.verify(str(tmp_path / "empty"))
    assert caught.value.code == "snapshot-incomplete"


def test_a_directory_without_manifest(image: Path) -> None:
    (image / "diapause.json").unlink()

    assert code_of(image) == "snapshot-incomplete"


def test_a_missing_file(image: Path) -> None:
    (image / "core-1.img").unlink()

    assert code_of(image) == "snapshot-file-missing"


def test_a_short_file_is_found_without_reading_it(image: Path) -> None:
    os.truncate(image / "pages-1.img", 5999)

    with pytest.raises(InvalidArgument, match="5999 bytes, the manifest says 6000"):
        snapshot.Snapshot.open(str(image))
    assert code_of(image) == "snapshot-short-file"


def test_a_file_that_is_not_in_the_manifest(image: Path) -> None:
    (image / "core-99.img").write_text("strange")

    assert code_of(image) == "snapshot-unexpected-file"


@pytest.mark.parametrize("name", ["pages-1.img", "diapause.json"])
def test_links_are_not_followed(image: Path, name: str) -> None:
    (image / name).rename(image.parent / "elsewhere")
    (image / name).symlink_to(image.parent / "elsewhere")

    assert code_of(image) == "snapshot-bad-file"


def test_a_fifo_does_not_hang_the_reader(image: Path) -> None:
    (image / "core-1.img").unlink()
    os.mkfifo(image / "core-1.img")

    assert code_of(image) == "snapshot-bad-file"


def test_an_enormous_manifest_is_not_read(image: Path) -> None:
    os.truncate(image / "diapause.json", manifest.MAX_BYTES + 1)

    assert code_of(image) == "snapshot-bad-file"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(index=st.integers(0, 5999), bit=st.integers(0, 7))
def test_a_flipped_bit_in_a_file_is_found(image: Path, index: int, bit: int) -> None:
    data = bytearray(b"memory" * 1000)
    data[index] ^= 1 << bit
    (image / "pages-1.img").write_bytes(data)

    assert code_of(image) == "snapshot-file-digest"


def test_only_the_chosen_files_are_read(image: Path) -> None:
    (image / "pages-1.img").write_bytes(b"MEMORY" * 1000)

    with snapshot.Snapshot.open(str(image)) as found:
        found.verify(lambda file: file.size < 100)
        with pytest.raises(InvalidArgument, match=r"pages-1\.img"):
            found.verify(lambda file: file.size >= 100)


def test_a_commit_that_fails_leaves_no_manifest(
    image: Path, document: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (image / "diapause.json").unlink()

    def full(*_: object) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(os, "rename", full)
    with pytest.raises(OSError, match="no space"):
        snapshot.commit(str(image), manifest.Manifest(document()), sync=True)

    assert not [name for name in os.listdir(image) if name.startswith(layout.MANIFEST)]


def test_the_manifest_is_the_last_to_be_synced(
    image: Path, document: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))
    entries = manifest.file_entries(snapshot.parts(str(image), {}))

    snapshot.commit(str(image), manifest.Manifest(document(files=entries)), sync=True)

    names = [os.path.basename(path) for path in synced]
    assert names[:2] == ["core-1.img", "pages-1.img"]
    assert names[2].startswith("diapause.json")
    assert names[3] == "image"


def test_clear_makes_room_for_a_new_dump(image: Path) -> None:
    snapshot.clear(str(image))

    assert sorted(os.listdir(image)) == ["core-1.img", "dump.log"]
    snapshot.clear(str(image / "none"))


def test_a_revoked_snapshot_is_none(image: Path) -> None:
    assert snapshot.committed(str(image))
    snapshot.revoke(str(image))
    snapshot.revoke(str(image))

    assert not snapshot.committed(str(image))


def test_a_later_format_is_refused_by_its_number_and_not_by_a_crash(image: Path) -> None:
    later = {**json.loads((image / "diapause.json").read_text()), "version": 2, "files": {"shape": "new"}}
    (image / "diapause.json").write_text(json.dumps(later))

    with pytest.raises(DiapauseError, match="format version 2"):
        snapshot.verify(str(image))


def test_all_that_is_wrong_is_listed(image: Path) -> None:
    (image / "core-1.img").unlink()
    (image / "core-99.img").write_text("strange")
    (image / "pages-1.img").write_bytes(b"MEMORY" * 1000)

    with snapshot.Snapshot.open(str(image), compare=False) as found:
        assert [(name, error.code) for name, error in found.faults()] == [
            ("core-99.img", "snapshot-unexpected-file"),
            ("core-1.img", "snapshot-file-missing"),
            ("pages-1.img", "snapshot-file-digest"),
        ]
        assert len(list(found.faults(contents=False))) == 2
