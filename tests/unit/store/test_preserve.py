"""An image that would be deleted is kept, whole."""

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from diapause.runtime.errors import FailedPrecondition
from diapause.runtime.store import entry, snapshot
from diapause.runtime.store.local import Local
from diapause.runtime.store.preserve import keep


@pytest.fixture
def store(tmp_path: Path) -> Local:
    return Local(str(tmp_path / "store"), str(tmp_path / "memory/snapshots"))


def across(*_: object, **__: object) -> None:
    raise OSError(errno.EXDEV, "invalid cross-device link")


def test_the_copy_outlives_the_image(image: Path, store: Local) -> None:
    inode = (image / "pages-1.img").stat().st_ino

    path = keep(str(image), store, id="c1", note="it did not come back")

    assert Path(path, "pages-1.img").stat().st_ino == inode
    shutil.rmtree(image)
    assert snapshot.verify(path).size == 6009
    [found] = store.all()
    assert (found.path, found.tier, found.fault) == (path, "disk", "")
    assert found.entry is not None
    assert (found.entry.kind, found.entry.note) == (entry.IMAGE, "it did not come back")
    assert found.entry.image == str(image)


def test_it_is_copied_to_another_file_system(
    image: Path, store: Local, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", across)
    (image / "pages-1.img").write_bytes(os.urandom(1 << 20))

    path = keep(str(image), store, id="c1", note="")

    assert Path(path, "pages-1.img").read_bytes() == (image / "pages-1.img").read_bytes()
    assert Path(path, "pages-1.img").stat().st_ino != (image / "pages-1.img").stat().st_ino
    assert Path(path, "pages-1.img").stat().st_mode & 0o777 == 0o600


def test_links_in_it_are_left_out(image: Path, store: Local) -> None:
    os.symlink("/etc/shadow", image / "link.img")

    assert "link.img" not in os.listdir(keep(str(image), store, id="c1", note=""))


def test_no_room_leaves_nothing(image: Path, store: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    real, there = os.stat, os.stat(image)
    store.limit = 100

    def elsewhere(path: Any, **more: Any) -> os.stat_result:
        found = real(path, **more)
        return os.stat_result([*found[:2], there.st_dev + 1, *found[3:]]) if path == store.disk else found

    monkeypatch.setattr(os, "stat", elsewhere)
    with pytest.raises(FailedPrecondition):
        keep(str(image), store, id="c1", note="")
    assert store.all() == []


def test_a_failure_in_the_middle_leaves_nothing(
    image: Path, store: Local, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(os, "link", across)
    monkeypatch.setattr(os, "sendfile", full)
    with pytest.raises(OSError, match="no space"):
        keep(str(image), store, id="c1", note="")
    assert store.all() == []
    assert store.unfinished() == []
