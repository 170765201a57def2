"""The local store: names, room, locks, and what a crash leaves."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from diapause.runtime.errors import (
    AlreadyExists,
    DiapauseError,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
)
from diapause.runtime.linux import filesystem
from diapause.runtime.store import entry, local, room
from diapause.runtime.store.entry import Entry
from diapause.runtime.store.local import Local

MIB = 1 << 20


@pytest.fixture
def store(tmp_path: Path) -> Local:
    return Local(str(tmp_path / "store"))


def described(**changes: object) -> Entry:
    fields = {"kind": entry.GPU_DATA, "id": "c1", "created": "2026-01-02T03:04:05Z", "bytes": 5, **changes}
    return Entry(**fields)  # type: ignore[arg-type]


def put(store: Local, name: str, data: bytes = b"data", **changes: object) -> None:
    draft = store.create(name, len(data))
    Path(draft.path, "diapause-gpu-0.img").write_bytes(data)
    draft.commit(described(**changes), sync=False)
    draft.close()


def names(store: Local) -> list[str]:
    return [found.name for found in store.all()]


def test_what_was_committed_is_found_and_removed(store: Local) -> None:
    put(store, "c1-a", id="c1")
    put(store, "c2-b", id="c2")

    with store.open("c1-a") as held:
        assert os.listdir(held.fd) == os.listdir(held.path)
        assert held.entry.id == "c1"
    first, second = store.all()
    assert (first.name, first.tier, first.busy, first.fault) == ("c1-a", "disk", False, "")
    assert first.entry is not None
    assert first.entry.fields() == described().fields()
    assert second.stored >= 4096
    store.remove("c1-a")
    assert names(store) == ["c2-b"]


def test_the_directories_are_private(store: Local) -> None:
    put(store, "a")

    assert os.stat(store.disk).st_mode & 0o777 == 0o700
    assert os.stat(f"{store.disk}/a").st_mode & 0o777 == 0o700
    assert os.stat(f"{store.disk}/a/diapause-local.json").st_mode & 0o777 == 0o600


def test_a_store_that_others_can_write_is_refused(store: Local) -> None:
    os.makedirs(store.disk)
    os.chmod(store.disk, 0o777)

    with pytest.raises(FailedPrecondition, match="others can write"):
        store.create("a", 1)


def test_what_is_not_committed_cannot_be_opened(store: Local) -> None:
    draft = store.create("a", 1)

    with pytest.raises(NotFound) as caught:
        store.open("a", host="n7")
    assert caught.value.code == "snapshot-local-missing"
    assert "local store of n7" in str(caught.value)
    [found] = store.all()
    assert (found.name, found.busy, found.fault) == ("a", True, "it is being written")
    draft.commit(described(), sync=True)
    store.open("a").close()
    draft.abandon()
    assert names(store) == []


def test_a_name_is_given_once(store: Local) -> None:
    put(store, "a")
    draft = store.create("b", 1)

    for name in ("a", "b"):
        with pytest.raises(AlreadyExists):
            store.create(name, 1)
    draft.abandon()
    store.create("b", 1).abandon()
    assert names(store) == ["a"]


@pytest.mark.parametrize("name", ["", "..", "../a", "a/b", ".part-a", "-a", "a b", "a" * 201])
def test_a_name_is_plain(store: Local, name: str) -> None:
    with pytest.raises(InvalidArgument):
        store.create(name, 1)
    with pytest.raises(NotFound):
        store.open(name)
    with pytest.raises(NotFound):
        store.remove(name)


def test_new_names_are_plain_whatever_the_container_is_called(store: Local) -> None:
    for container in ("c1", "/weird name/é", "", "..", "x" * 300):
        store.create(local.new_name(container), 1).abandon()
    assert local.new_name("c1") != local.new_name("c1")


def test_a_full_store_refuses_before_anything_is_written(store: Local) -> None:
    store.limit = 3 * MIB
    put(store, "a", b"x" * MIB)
    writing = store.create("b", MIB)  # counts although nothing of it is written yet

    with pytest.raises(FailedPrecondition, match="store-limit") as caught:
        store.create("c", MIB + MIB // 2)
    assert caught.value.code == "store-full"
    writing.abandon()
    store.create("c", MIB + MIB // 2).abandon()
    assert names(store) == ["a"]


def test_a_full_disk_refuses_too(store: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "free_bytes", lambda _: room.HEADROOM + 2 * MIB)
    writing = store.create("a", MIB + 65536)

    with pytest.raises(FailedPrecondition, match="bytes are free") as caught:
        store.create("b", MIB)
    assert caught.value.code == "store-full"
    writing.abandon()
    store.create("b", MIB).abandon()


CRASH = """
import os, sys
from diapause.runtime.store.local import Local
draft = Local(sys.argv[1]).create(sys.argv[2], 1)
open(draft.path + "/diapause-gpu-0.img", "w").write("half")
os.kill(os.getpid(), 9)
"""


def test_what_a_killed_writer_left_is_removed_by_the_next_one(store: Local) -> None:
    env = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    subprocess.run([sys.executable, "-c", CRASH, store.disk, "a"], env=env, check=False, timeout=30)
    [found] = store.all()
    assert (found.name, found.busy, found.fault) == ("a", False, "it was not finished")
    assert store.unfinished() == [f"{store.disk}/.part-a"]

    store.create("a", 1).abandon()

    assert os.listdir(store.disk) == [".lock"]


def test_what_was_cut_off_makes_room_when_it_is_needed(store: Local) -> None:
    left = Path(store.disk, ".part-a")
    store.create("b", 1).abandon()
    left.mkdir(mode=0o700)
    (left / "diapause-gpu-0.img").write_bytes(b"x" * MIB)
    store.limit = 2 * MIB

    store.create("b", MIB // 2).abandon()
    assert left.exists()
    store.create("b", MIB + MIB // 2).abandon()
    assert not left.exists()


def test_a_sweep_spares_those_who_work(store: Local) -> None:
    put(store, "a")
    draft = store.create("b", 1)
    os.makedirs(f"{store.disk}/.gone-c-123456")
    Path(store.disk, ".gone-c-123456", "diapause-gpu-0.img").write_text("rest")

    assert store.sweep() == [f"{store.disk}/.gone-c-123456"]
    assert names(store) == ["a", "b"]
    draft.abandon()


def test_what_is_used_stays(store: Local) -> None:
    put(store, "a")
    with store.open("a"), store.open("a"):
        with pytest.raises(DiapauseError) as caught:
            store.remove("a")
        assert caught.value.code == "store-in-use"
        assert [found.busy for found in store.all()] == [True]
    store.remove("a")


def test_a_use_is_remembered(store: Local) -> None:
    put(store, "a")
    os.utime(f"{store.disk}/a", (1, 1))
    [before] = store.all()
    with store.open("a") as held:
        held.touch()
    [after] = store.all()

    assert before.used == 1
    assert after.used > 1


def test_removing_what_is_not_there(store: Local) -> None:
    with pytest.raises(NotFound) as caught:
        store.remove("a")
    assert caught.value.code == "store-missing"
    store.remove("a", missing_ok=True)


def test_a_link_is_no_snapshot(store: Local, tmp_path: Path) -> None:
    put(store, "a")
    os.symlink("a", f"{store.disk}/b")

    with pytest.raises(NotFound):
        store.open("b")
    with pytest.raises(NotFound):
        store.remove("b")
    assert names(store) == ["a"]


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b'{"magic": "diapause-local", "version": 2}', b"[" * 10000, b"\xff",
     b'{"magic": "diapause-local", "version": 1, "kind": "x"}', b" " * 70000],
)  # fmt: skip
def test_a_damaged_description_is_shown_and_can_be_removed(store: Local, data: bytes) -> None:
    put(store, "a")
    Path(store.disk, "a", "diapause-local.json").write_bytes(data)

    [found] = store.all()
    assert found.entry is None
    assert "diapause-local.json" in found.fault
    with pytest.raises(InvalidArgument) as caught:
        store.open("a")
    assert caught.value.code == "store-entry-malformed"
    store.remove("a")


def test_memory_is_taken_as_long_as_it_lasts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mem").mkdir(mode=0o700)
    store = Local(str(tmp_path / "store"), str(tmp_path / "mem/snapshots"))
    free = {str(tmp_path / "mem"): room.HEADROOM + MIB, store.disk: 1 << 40}
    monkeypatch.setattr(room, "free_bytes", lambda path: free[path])
    monkeypatch.setattr(filesystem, "in_memory", lambda _: True)

    first = store.create("a", MIB)
    second = store.create("b", MIB)

    assert (first.tier, second.tier) == ("memory", "disk")
    assert first.path.startswith(f"{tmp_path}/mem/snapshots/")
    with pytest.raises(AlreadyExists):
        store.create("a", 1)
    first.commit(described(), sync=False)
    first.close()
    store.open("a").close()
    assert [(found.name, found.tier) for found in store.all()] == [("a", "memory"), ("b", "disk")]
    store.remove("a")
    second.abandon()


def test_a_memory_dir_that_is_not_mounted_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Local(str(tmp_path / "store"), str(tmp_path / "mem/snapshots"))
    monkeypatch.setattr(filesystem, "in_memory", lambda _: False)

    assert store.memory_fault() == f"{tmp_path}/mem: no such file or directory"
    (tmp_path / "mem").mkdir(mode=0o700)
    assert store.memory_fault() == f"{tmp_path}/mem is no tmpfs"
    draft = store.create("a", 1)
    assert draft.tier == "disk"
    draft.abandon()


def test_a_faulted_segment_is_free_until_a_snapshot_has_it(tmp_path: Path) -> None:
    segments = tmp_path / "mem/.segments/GPU-1"
    segments.mkdir(parents=True)
    (segments / "0.img").write_bytes(b"x" * MIB)
    (segments / "1.img").write_bytes(b"x" * MIB)
    before = room.free_memory(str(tmp_path / "mem"))
    os.link(segments / "0.img", tmp_path / "mem/used.img")

    assert before - room.free_memory(str(tmp_path / "mem")) == pytest.approx(MIB, abs=MIB // 2)
