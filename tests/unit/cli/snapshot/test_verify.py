"""`diapause snapshot verify` names what is damaged, and its exit code says it to scripts."""

from pathlib import Path

import pytest

from diapause.runtime.store.gpu_index import BLOCK

from ... import gpu_snapshots
from .conftest import Shell


def test_sound_ones(shell: Shell, whole: Path, split: Path, plain: Path) -> None:
    text = shell("verify", str(whole), str(split), str(plain), "c1-x")

    assert [line.partition(": ")[2].partition(" (")[0] for line in text.splitlines()] == ["sound"] * 4
    [first, *_] = shell.json("verify", str(whole))
    assert (first["state"], first["exit_code"], first["faults"]) == ("sound", 0, [])


def test_every_damage_is_named_with_its_file_and_allocation(shell: Shell, whole: Path) -> None:
    gpu_snapshots.damage(whole / "pages-1.img", 17)
    gpu_snapshots.damage(whole / "diapause-gpu-0.img", 3 * BLOCK + 5)
    (whole / "core-2.img").write_text("strange")

    text = shell("verify", str(whole), code=3)

    assert text.splitlines()[0].startswith(f"{whole}: damaged")
    assert "core-2.img is not in its manifest [snapshot-unexpected-file]" in text
    assert "pages-1.img has digest blake3:" in text
    damaged = (
        f"allocation 1 of process 7 at byte {BLOCK}: diapause-gpu-0.img at byte {3 * BLOCK} has another hash"
    )
    assert damaged in text
    [found] = shell.json("verify", str(whole), code=3)
    assert [(f["code"], f["file"], f["allocation"]) for f in found["faults"]] == [
        ("snapshot-unexpected-file", "core-2.img", None),
        ("snapshot-file-digest", "pages-1.img", None),
        ("gpu-block", "diapause-gpu-0.img", {"process": 7, "id": 1, "offset_bytes": BLOCK}),
    ]


def test_quick_reads_no_contents(shell: Shell, whole: Path) -> None:
    gpu_snapshots.damage(whole / "pages-1.img", 17)
    gpu_snapshots.damage(whole / "diapause-gpu-0.img", 5)

    assert "sound (names and sizes" in shell("verify", "--quick", str(whole))
    (whole / "pages-1.img").write_bytes(b"short")
    assert "pages-1.img has 5 bytes" in shell("verify", "--quick", str(whole), code=3)


def test_damage_in_the_local_store(shell: Shell, split: Path) -> None:
    gpu_snapshots.damage(Path(shell.store.disk, "c1-x", "diapause-gpu-1.img"), 5)

    for name in (str(split), "c1-x"):
        [found] = shell.json("verify", name, code=3)
        assert found["faults"][0]["allocation"] == {"process": 1, "id": 1, "offset_bytes": 2 * BLOCK}


def test_data_that_is_on_another_machine(shell: Shell, split: Path) -> None:
    shell.store.remove("c1-x")

    text = shell("verify", str(split), code=4)

    assert "not here" in text
    assert "snapshot-local-missing" in text


def test_what_cannot_be_checked(shell: Shell, split: Path, plain: Path) -> None:
    shell("verify", "nothing", code=1)
    assert "snapshot-unknown" in shell.out
    (plain / "diapause.json").unlink()
    shell("verify", str(plain), code=1)
    assert "snapshot-incomplete" in shell.out
    shell("verify", code=2)


@pytest.mark.parametrize("data", [b"{", b'{"magic": "diapause-snapshot", "version": 1}'])
def test_a_damaged_manifest(shell: Shell, plain: Path, data: bytes) -> None:
    (plain / "diapause.json").write_bytes(data)

    assert "snapshot-malformed" in shell("verify", str(plain), code=3)


def test_the_worst_decides(shell: Shell, whole: Path, split: Path) -> None:
    shell.store.remove("c1-x")
    shell("verify", str(whole), str(split), "nothing", code=4)
    gpu_snapshots.damage(whole / "pages-1.img", 17)
    shell("verify", str(whole), str(split), "nothing", code=3)
