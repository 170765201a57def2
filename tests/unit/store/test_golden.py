"""Snapshots of old are read: the archives in golden/ are never made anew."""

import json
import os
import tarfile
from hashlib import sha256
from pathlib import Path

import pytest
from blake3 import blake3

from diapause.runtime.errors import NotFound
from diapause.runtime.store import block_hash, gpu_index, snapshot
from diapause.runtime.store.embed import embed
from diapause.runtime.store.gpu_data import GpuData
from diapause.runtime.store.gpu_index import BLOCK, ZERO
from diapause.runtime.store.local import Local
from diapause.runtime.store.snapshot import Snapshot

ARCHIVE = Path(__file__).parent / "golden" / "format-1.tar.xz"
NAME = "golden-20261201T160000Z-c0ffee"
FIRST = (10638337601647231793, 11707668489222741688)


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("golden")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(path, filter="data")
    return path / "format-1"


@pytest.fixture(scope="module")
def store(golden: Path) -> Local:
    os.chmod(golden / "store", 0o700)
    return Local(str(golden / "store"))


def block(number: int) -> bytes:
    part = b"".join(sha256(f"{number}.{i}".encode()).digest() for i in range(128))
    return part * (BLOCK // len(part))


def test_the_archive_is_the_one_that_it_was() -> None:
    assert (
        sha256(ARCHIVE.read_bytes()).hexdigest()
        == "af9462ffc1065a4f15f53f3647bce632ad91b30e734bb83240f4aedbec4b66fb"
    )


@pytest.mark.parametrize("name", ["driver", "embedded", "local"])
def test_every_part_is_as_its_manifest_says(golden: Path, name: str) -> None:
    document = snapshot.verify(str(golden / name))

    assert document.driver is not None
    assert document.driver["version"] == "580.159.03"
    assert document.flags == ["tcp-established", "file-locks"]
    assert [(p.pid, p.comm, p.stopped) for p in document.processes] == [
        (1, "train", False),
        (12, "wörker", True),
    ]
    assert document.library == "sha256:" + "1b" * 32
    assert (document.gpu_data is None) == (name == "driver")


@pytest.mark.parametrize("name", ["driver", "embedded", "local"])
def test_the_root_digest_is_what_the_specification_says(golden: Path, name: str) -> None:
    document = json.loads((golden / name / "diapause.json").read_bytes())
    stated = document.pop("digest")
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)

    assert stated == f"blake3:{blake3(text.encode()).hexdigest()}"


@pytest.mark.parametrize("name", ["embedded", "local"])
def test_the_gpu_data_is_read(golden: Path, store: Local, name: str) -> None:
    with Snapshot.open(str(golden / name)) as found, GpuData.open(found, store) as data:
        index = data.index
        assert list(data.damages()) == []

    assert [uuid.hex() for uuid in index.devices] == ["5ad12c4b0f3e47b0a1c2d3e4f5061728"]
    assert [(a.process, a.id, a.address, a.size, a.flags) for a in index.allocations] == [
        (1, 1, 0x302000000, 2 * BLOCK, 16), (1, 4, 0, BLOCK, 32), (12, 1, 0x302000000, BLOCK, 1),
    ]  # fmt: skip
    assert [block[:2] for block in index.blocks] == [(0, 1), ZERO[:2], (1, 2), (0, 0)]
    assert index.blocks[0][2:] == FIRST
    assert (index.bytes, index.zero) == (4 * BLOCK, BLOCK)


def test_the_blocks_lie_in_their_slots(golden: Path) -> None:
    with open(golden / "embedded" / "diapause-gpu-0.img", "rb") as file:
        assert file.read(BLOCK) == block(3)
        assert file.read(BLOCK) == block(1)
    with open(golden / "embedded" / "diapause-gpu-1.img", "rb") as file:
        file.seek(2 * BLOCK)
        assert file.read() == block(2)


def test_the_slow_hash_agrees() -> None:
    assert block_hash.of_block(block(1), BLOCK) == FIRST


def test_an_index_is_written_as_it_was(golden: Path) -> None:
    data = (golden / "embedded" / "diapause-gpu.idx").read_bytes()

    assert gpu_index.encode(gpu_index.decode(data, "golden")) == data


def test_the_local_one_is_listed_and_can_be_embedded(golden: Path, store: Local, tmp_path: Path) -> None:
    [found] = store.all()
    assert found.name == NAME
    assert found.entry is not None
    assert found.entry.id == "golden"
    image = tmp_path / "image"
    image.mkdir()
    for path in (golden / "local").iterdir():
        (image / path.name).write_bytes(path.read_bytes())
    with pytest.raises(NotFound), Snapshot.open(str(image)) as other:
        GpuData.open(other, Local(str(tmp_path / "empty")))

    embed(str(image), store)

    with Snapshot.open(str(image)) as whole, GpuData.open(whole, Local(str(tmp_path / "empty"))) as data:
        assert list(data.damages()) == []
