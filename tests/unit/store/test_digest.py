"""Digests of files, and of files that are still being written."""

import os
import time
from pathlib import Path

import pytest
from blake3 import blake3

from diapause.runtime.store import digest
from diapause.runtime.store.background import Background


def expected(data: bytes) -> str:
    return f"blake3:{blake3(data).hexdigest()}"


@pytest.mark.parametrize("size", [0, 1, 4096, digest._CHUNK + 1, digest._PARALLEL + 1])
def test_small_and_large_files_have_the_digest_of_their_bytes(tmp_path: Path, size: int) -> None:
    data = os.urandom(1024) * (size // 1024) + b"x" * (size % 1024)
    (tmp_path / "file").write_bytes(data)
    fd = os.open(tmp_path / "file", os.O_RDONLY)

    assert digest.of_file(fd) == (size, expected(data))
    os.close(fd)


def test_a_growing_file_is_followed_to_its_end(tmp_path: Path) -> None:
    follower = digest.Follower(str(tmp_path))
    data = os.urandom(3 << 20)
    with (tmp_path / "pages-1.img").open("wb") as file:
        for at in range(0, len(data), 1 << 18):
            file.write(data[at : at + (1 << 18)])
            file.flush()
    (tmp_path / "core-1.img").write_bytes(b"not followed")

    for _ in range(500):
        if follower._files:
            break
        follower._stop.wait(0.01)
    found = follower.finish()

    inode = (tmp_path / "pages-1.img").stat().st_ino
    assert found == {"pages-1.img": (inode, len(data), expected(data))}


def test_a_follower_of_nothing_finds_nothing(tmp_path: Path) -> None:
    assert digest.Follower(str(tmp_path / "not made yet")).finish() == {}


def test_a_link_in_the_directory_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    (tmp_path / "pages-1.img").symlink_to("secret")

    assert digest.Follower(str(tmp_path)).finish() == {}


def test_a_check_in_the_background_raises_where_it_is_asked_for() -> None:
    def fails() -> None:
        raise ValueError("wrong digest")

    check = Background(fails)

    with pytest.raises(ValueError, match="wrong digest"):
        check.result()


def test_a_following_writer_to_disk_hashes_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[tuple[int, int]] = []
    monkeypatch.setattr(digest.libc, "start_writeback", lambda fd, offset, size: begun.append((offset, size)))
    (tmp_path / "pages-1.img").write_bytes(b"x" * 10_000)
    follower = digest.Follower(str(tmp_path), sync=True)
    end = time.monotonic() + 10
    while not begun and time.monotonic() < end:
        time.sleep(0.001)

    found = follower.finish()

    assert begun == [(0, 10_000)]
    assert found["pages-1.img"][1:] == (10_000, digest.of_bytes(b"x" * 10_000))
