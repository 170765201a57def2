"""`diapause snapshot embed`, `rm` and `prune`."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from diapause.runtime.store import entry
from diapause.runtime.store.entry import Entry
from diapause.runtime.store.gpu_index import BLOCK

from .conftest import Shell


def names(shell: Shell) -> list[str]:
    return [found.name for found in shell.store.all()]


def put(shell: Shell, name: str, *, used: float, kind: str = entry.GPU_DATA) -> None:
    draft = shell.store.create(name, 1)
    Path(draft.path, "diapause-gpu-0.img").write_bytes(b"x" * 65536)
    draft.commit(Entry(kind=kind, id="c9", created="2026-01-02T03:04:05Z"), sync=False)
    draft.close()
    os.utime(f"{shell.store.disk}/{name}", (used, used))


def test_embed_makes_an_image_whole(shell: Shell, split: Path) -> None:
    assert shell("embed", str(split)).splitlines()[-1] == f"Embedded 8.00 MiB into {split}"
    assert "c1-x is still in the local store" in shell.err
    shell.store.remove("c1-x")
    assert "sound" in shell("verify", str(split))
    shell("embed", str(split), code=1)
    assert "embed-needless" in shell.err


def test_embed_can_remove_the_local_snapshot(shell: Shell, split: Path) -> None:
    shell("embed", "--rm", "split")

    assert names(shell) == []
    assert shell.json("show", "split")["gpu_data"]["placement"] == "embedded"


def test_embed_wants_an_image(shell: Shell, split: Path) -> None:
    shell("embed", "c1-x", code=1)
    assert "embed-no-image" in shell.err


def test_rm_of_a_local_snapshot(shell: Shell, split: Path) -> None:
    assert shell("rm", "c1-x") == "Removed c1-x\n"
    assert names(shell) == []
    shell("rm", "c1-x", code=1)
    assert "snapshot-unknown" in shell.err


def test_rm_of_an_image_takes_what_belongs_to_it(shell: Shell, split: Path, plain: Path) -> None:
    (plain / "config.dump").write_text("a client's")

    shell("rm", str(split), str(plain))

    assert not split.exists()
    assert os.listdir(plain) == ["config.dump"]
    assert "diapause snapshot rm c1-x" in shell.err
    assert "config.dump" in shell.err
    assert names(shell) == ["c1-x"]


def test_rm_of_a_directory_that_is_no_snapshot(shell: Shell) -> None:
    (shell.path / "mine").mkdir()
    (shell.path / "mine/core-1.img").write_text("precious")

    shell("rm", "./mine", code=1)

    assert "snapshot-incomplete" in shell.err
    assert os.listdir(shell.path / "mine") == ["core-1.img"]


def test_rm_of_what_is_in_use(shell: Shell, split: Path) -> None:
    with shell.store.open("c1-x"):
        shell("rm", "c1-x", code=1)
    assert "store-in-use" in shell.err


def test_the_memory_of_a_suspended_container_is_not_removed_by_chance(shell: Shell) -> None:
    put(shell, "suspended-1", used=1, kind=entry.SUSPENDED)

    assert "of a suspended container" in shell("list")
    shell("prune", "--older-than", "1s", "--to", "0")
    shell("rm", "suspended-1", code=1)
    assert "snapshot-suspended" in shell.err
    assert names(shell) == ["suspended-1"]
    shell("rm", "--force", "suspended-1")
    assert names(shell) == []


def test_prune_removes_what_was_cut_off_and_nothing_else(
    shell: Shell, split: Path, cut_off: Callable[[str], Path]
) -> None:
    path = cut_off("c9")
    draft = shell.store.create("c8", 1)

    assert f"would remove {path} (cut off, " in shell("prune", "--dry-run")
    assert path.exists()
    assert f"removed {path} (cut off, " in shell("prune")
    assert not path.exists()
    assert shell("prune") == "freed 0 B\n"
    assert names(shell) == ["c1-x", "c8"]
    draft.abandon()


def test_prune_by_age(shell: Shell, split: Path) -> None:
    put(shell, "old", used=1000)

    [row] = shell.json("prune", "--older-than", "7d", "--dry-run")
    assert (Path(row["path"]).name, row["removed"]) == ("old", False)
    assert names(shell) == ["c1-x", "old"]
    [row] = shell.json("prune", "--older-than", "7d")
    assert row["removed"] is True
    assert row["stored_bytes"] >= 65536
    assert names(shell) == ["c1-x"]


def test_prune_to_a_size_takes_the_least_used_first(shell: Shell, split: Path) -> None:
    put(shell, "older", used=1000)
    put(shell, "newer", used=2000)

    shell("prune", "--to", str(9 * BLOCK))
    assert names(shell) == ["c1-x", "newer", "older"]
    stored = {found.name: found.stored for found in shell.store.all()}
    shell("prune", "--to", str(sum(stored.values()) - 1))
    assert names(shell) == ["c1-x", "newer"]
    shell("prune", "--to", "0")
    assert names(shell) == []


def test_prune_spares_what_is_in_use(shell: Shell, split: Path) -> None:
    with shell.store.open("c1-x"):
        shell("prune", "--to", "0")
    assert names(shell) == ["c1-x"]


@pytest.mark.parametrize("args", [("--older-than", "soon"), ("--to", "much"), ("--older-than", "-1d")])
def test_prune_wants_ages_and_sizes(shell: Shell, args: tuple[str, str]) -> None:
    shell("prune", *args, code=2)


def test_prune_without_a_store(shell: Shell) -> None:
    assert shell("prune") == "freed 0 B\n"
    assert shell("prune", "--dry-run") == "would free 0 B\n"
