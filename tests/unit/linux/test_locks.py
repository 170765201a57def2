"""A lock has one holder, and who dies lets go."""

import os
from pathlib import Path

import pytest

from diapause.runtime.linux.locks import Lock

# Threads of the test process hold no lock that the forked children need.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


def test_a_second_taker_gets_nothing_until_the_first_lets_go(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    first = Lock.try_take(path)
    assert first is not None

    assert Lock.try_take(path) is None
    first.close()
    with Lock.try_take(path) as again:  # type: ignore[union-attr]
        assert again is not None


def test_the_lock_of_a_dead_process_is_free(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        Lock.try_take(path)
        os.write(write, b"x")
        os.read(os.pipe()[0], 1)
    os.read(read, 1)
    assert Lock.try_take(path) is None

    os.kill(pid, 9)
    os.waitpid(pid, 0)

    assert Lock.try_take(path) is not None


def test_a_lock_file_that_was_replaced_is_not_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    old = Lock.try_take(str(path))
    assert old is not None
    path.unlink()

    new = Lock.try_take(str(path))

    assert new is not None
    assert Lock.try_take(str(path)) is None
