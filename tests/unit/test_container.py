import hashlib
import os
from pathlib import Path

import pytest

from diapause.runtime.container import Container, key
from diapause.runtime.errors import FailedPrecondition, Unavailable

STATE = {"version": 1, "root": "/r", "id": "c1"}


def test_the_key_stands_for_root_and_id() -> None:
    assert key("/run/runc", "c1") == hashlib.sha256(b"/run/runc\0c1").hexdigest()[:32]
    assert key("/a", "c1") != key("/b", "c1")


def test_a_name_of_any_bytes_has_a_key() -> None:
    name = os.fsdecode(b"\xff\xe9")
    assert key("/r", name) == hashlib.sha256(b"/r\0\xff\xe9").hexdigest()[:32]


def test_the_state_comes_back() -> None:
    container = Container("/r", "c1")
    assert container.load_state() is None
    container.make_directory()
    container.store_state(dict(STATE))
    assert container.load_state() == STATE
    assert Path(container.directory).stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "line 1 column 2"),
        ("[]", "not version 1"),
        ('{"version": 2}', "not version 1"),
        ('{"version": 1, "root": "/r", "id": "c2"}', "another container"),
    ],
)
def test_a_bad_state_is_refused(text: str, why: str) -> None:
    container = Container("/r", "c1")
    container.make_directory()
    Path(container.directory, "state.json").write_text(text, encoding="utf-8")
    with pytest.raises(FailedPrecondition, match=why):
        container.load_state()


@pytest.mark.parametrize("level", range(3))
def test_a_directory_that_others_can_write_is_not_used(level: int) -> None:
    container = Container("/r", "c1")
    container.make_directory()
    [Path(container.directory), *Path(container.directory).parents][level].chmod(0o777)
    with pytest.raises(FailedPrecondition, match="others can write there"):
        container.make_directory()


def test_directories_are_private_whatever_the_umask() -> None:
    container = Container("/r", "c1")
    before = os.umask(0)
    try:
        container.make_directory()
    finally:
        os.umask(before)
    path = Path(container.directory)
    for folder in (path, path.parent, path.parent.parent):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_a_held_lock_is_waited_for_and_then_reported() -> None:
    container = Container("/r", "c1")
    container.make_directory()
    with container.lock(), pytest.raises(Unavailable, match="another operation holds it"):
        container.lock(wait=0.05)
    container.lock(wait=0).close()
