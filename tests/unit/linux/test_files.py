"""Files that others read appear whole or not at all; files of others are regular or refused."""

import os
from pathlib import Path

import pytest

from diapause.runtime.linux import files


def test_a_file_is_replaced_in_one_step(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_text("old")
    before = path.stat().st_ino

    files.write_atomic(str(path), b"new")

    assert path.read_bytes() == b"new"
    assert path.stat().st_ino != before
    assert path.stat().st_mode & 0o777 == 0o600
    assert not list(tmp_path.glob("state?*"))


@pytest.mark.parametrize("umask", [0, 0o077])
def test_the_mode_does_not_depend_on_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        files.write_atomic(str(tmp_path / "a"), b"", mode=0o555)
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o555


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state"
    path.write_text("old")

    def full(fd: int) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        files.write_atomic(str(path), b"new")

    assert path.read_text() == "old"
    assert not list(tmp_path.glob("state?*"))


def test_links_fifos_and_directories_are_no_regular_files(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("x")
    (tmp_path / "link").symlink_to("real")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()

    for name in ("link", "fifo", "folder"):
        with pytest.raises(OSError):  # noqa: PT011
            files.open_regular(str(tmp_path / name))


def test_reading_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * 11)

    with pytest.raises(OSError, match="large"):
        files.read_regular(str(tmp_path / "large"), limit=10)
    assert files.read_regular(str(tmp_path / "large"), limit=11) == b"x" * 11


def test_a_tree_is_removed_and_what_its_links_lead_to_stays(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("", encoding="utf-8")
    tree = tmp_path / "tree"
    (tree / "below").mkdir(parents=True)
    (tree / "below" / "file").write_text("", encoding="utf-8")
    (tree / "link").symlink_to(tmp_path / "kept")

    files.remove_tree(str(tree))

    assert not tree.exists()
    assert (tmp_path / "kept" / "file").exists()
