"""GPU data is found where the manifest says, and what is damaged is named."""

import os
from pathlib import Path
from typing import Any

import pytest

from diapause.runtime.errors import DiapauseError, FailedPrecondition, InvalidArgument, NotFound
from diapause.runtime.store import embed as embedding
from diapause.runtime.store import gpu_data, gpu_index, manifest, snapshot
from diapause.runtime.store.embed import embed
from diapause.runtime.store.gpu_data import GpuData
from diapause.runtime.store.gpu_index import BLOCK
from diapause.runtime.store.local import Local
from diapause.runtime.store.snapshot import Snapshot

from .. import gpu_snapshots


@pytest.fixture
def store(tmp_path: Path) -> Local:
    return Local(str(tmp_path / "store"))


@pytest.fixture
def embedded(image: Path, document: Any) -> Path:
    gpu_snapshots.embedded(image, document())
    return image


@pytest.fixture
def local(image: Path, document: Any, store: Local) -> Path:
    gpu_snapshots.local(image, document(), store, "c1-x")
    return image


def damages(image: Path, store: Local) -> list[str]:
    with Snapshot.open(str(image)) as found, GpuData.open(found, store) as data:
        return [str(damage) for damage in data.damages()]


def code_of(image: Path, store: Local) -> str:
    with pytest.raises((InvalidArgument, NotFound)) as caught:
        damages(image, store)
    return caught.value.code


def test_embedded_data_is_read(embedded: Path, store: Local) -> None:
    seen: list[int] = []
    snapshot.verify(str(embedded))
    with Snapshot.open(str(embedded)) as found, GpuData.open(found, store) as data:
        assert list(data.damages(seen.append)) == []
        assert len(list(data.kept())) == 4
    assert seen[-1] == 4 * BLOCK


def test_local_data_is_read_and_kept_meanwhile(local: Path, store: Local) -> None:
    snapshot.verify(str(local))
    with Snapshot.open(str(local)) as found, GpuData.open(found, store) as data:
        assert list(data.damages()) == []
        with pytest.raises(DiapauseError, match="uses it"):
            store.remove("c1-x")
        assert data.where == f"{store.disk}/c1-x"
    store.remove("c1-x")
    assert code_of(local, store) == "snapshot-local-missing"


def test_a_flipped_bit_is_found_with_its_allocation(embedded: Path, store: Local) -> None:
    gpu_snapshots.damage(embedded / "diapause-gpu-1.img", 100)
    gpu_snapshots.damage(embedded / "diapause-gpu-0.img", 4 * BLOCK - 1)

    snapshot.verify(str(embedded))  # which does not read GPU data
    assert damages(embedded, store) == [
        f"allocation 1 of process 1 at byte {2 * BLOCK}: diapause-gpu-1.img at byte 0 has another hash",
        f"allocation 1 of process 7 at byte {BLOCK}: diapause-gpu-0.img at byte {3 * BLOCK} has another hash",
    ]


def test_the_gap_in_a_data_file_does_not_matter(embedded: Path, store: Local) -> None:
    gpu_snapshots.damage(embedded / "diapause-gpu-0.img", 2 * BLOCK + 5)

    assert damages(embedded, store) == []


def test_a_longer_data_file_is_fine_where_the_store_has_it(local: Path, store: Local) -> None:
    os.truncate(f"{store.disk}/c1-x/diapause-gpu-1.img", 64 * BLOCK)

    assert damages(local, store) == []


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda top: os.unlink(top / "diapause-gpu-0.img"), "gpu-data-missing"),
        (lambda top: os.truncate(top / "diapause-gpu-0.img", 4 * BLOCK - 1), "gpu-data-short"),
        (lambda top: os.unlink(top / "diapause-gpu.idx"), "gpu-data-missing"),
        (lambda top: gpu_snapshots.damage(top / "diapause-gpu.idx", 70), "gpu-data-differs"),
        (lambda top: os.truncate(top / "diapause-gpu.idx", gpu_index.MAX_BYTES + 1), "gpu-data-unreadable"),
        (lambda top: (os.unlink(top / "diapause-gpu-0.img"), os.symlink("x", top / "diapause-gpu-0.img")),
         "gpu-data-unreadable"),
        (lambda top: (os.unlink(top / "diapause-gpu-0.img"), os.mkfifo(top / "diapause-gpu-0.img")),
         "gpu-data-unreadable"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_the_store_is_named(local: Path, store: Local, change: Any, code: str) -> None:
    change(Path(store.disk, "c1-x"))

    assert code_of(local, store) == code


def test_an_index_that_belongs_to_another_manifest(image: Path, document: Any, store: Local) -> None:
    gpu_snapshots.embedded(image, document())
    raw = snapshot.verify(str(image)).raw
    raw["gpu_data"]["zero"] = 0
    snapshot.commit(str(image), manifest.Manifest(raw), sync=False)

    assert code_of(image, store) == "gpu-data-differs"


def test_an_index_of_a_local_snapshot_is_adopted(image: Path, store: Local) -> None:
    draft = store.create("a", 1)
    gpu_snapshots.write(Path(draft.path))

    found = gpu_data.adopt(str(image), draft.path)

    assert found.startswith("blake3:")
    assert (image / "diapause-gpu.idx").read_bytes() == Path(draft.path, "diapause-gpu.idx").read_bytes()
    draft.abandon()


def test_embedding_makes_a_snapshot_whole(local: Path, store: Local) -> None:
    seen: list[int] = []

    document = embed(str(local), store, seen.append)

    assert document.gpu_data is not None
    assert document.gpu_data["placement"] == "embedded"
    assert seen[-1] == 4 * BLOCK
    store.remove("c1-x")
    assert damages(local, store) == []
    assert snapshot.verify(str(local)).gpu_data == document.gpu_data
    assert (local / "diapause-gpu-0.img").stat().st_mode & 0o777 == 0o600


def test_embedding_twice_is_refused(local: Path, store: Local) -> None:
    embed(str(local), store)

    with pytest.raises(FailedPrecondition) as caught:
        embed(str(local), store)
    assert caught.value.code == "embed-needless"


def test_nothing_damaged_is_embedded(local: Path, store: Local) -> None:
    gpu_snapshots.damage(Path(store.disk, "c1-x", "diapause-gpu-1.img"), 9)
    before = sorted(os.listdir(local))

    with pytest.raises(InvalidArgument, match=r"diapause-gpu-1\.img") as caught:
        embed(str(local), store)

    assert caught.value.code == "embed-damaged"
    assert sorted(os.listdir(local)) == before
    assert snapshot.verify(str(local)).raw["gpu_data"]["placement"] == "local"


def test_an_embedding_that_was_cut_off_changes_nothing_and_can_be_repeated(
    local: Path, store: Local, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(embedding.snapshots, "commit", full)
        with pytest.raises(OSError, match="no space"):
            embed(str(local), store)

    assert damages(local, store) == []  # the data files that lie there now do not disturb
    embed(str(local), store)
    store.remove("c1-x")
    assert damages(local, store) == []


def test_no_room_is_noticed_before(local: Path, store: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.statvfs(local)

    def tiny(_: object) -> os.statvfs_result:
        values = list(real)
        values[4] = 1
        return os.statvfs_result(values)

    monkeypatch.setattr(os, "statvfs", tiny)
    with pytest.raises(FailedPrecondition) as caught:
        embed(str(local), store)
    assert caught.value.code == "embed-no-space"
