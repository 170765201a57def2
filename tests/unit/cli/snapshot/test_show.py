"""`diapause snapshot show` and `list`."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from diapause.runtime.cli.snapshot import timeline
from diapause.runtime.store.gpu_index import BLOCK

from .conftest import Shell


def test_show_tells_processes_allocations_bytes_and_phases(shell: Shell, whole: Path) -> None:
    text = shell("show", str(whole))

    assert text.startswith(f"snapshot {whole}\n  container  c1\n")
    assert "10.0 MiB in 2 allocations, in this directory" in text
    lines = [line.split() for line in text.splitlines()]
    assert ["1", "train", "yes", "1", "6.00", "MiB"] in lines
    assert ["7", "worker?[2J", "yes", "1", "4.00", "MiB", "stopped"] in lines
    assert ["9", "sh", "-", "-", "-"] in lines
    assert ["1", "1", "0x300000000", "6.00", "MiB", "4.00", "MiB", "00010203"] in lines
    assert re.search(r"GPU memory, copied +8.00 MiB", text)
    assert re.search(r"GPU memory, zeros \(kept nowhere\) +2.00 MiB", text)
    assert "\x1b" not in text


def test_the_time_line_shows_what_ran_side_by_side(shell: Shell, whole: Path) -> None:
    lines = shell("show", str(whole)).splitlines()
    quiesce, copy, dump = (
        next(x for x in lines if x.split()[:1] == [n]) for n in ("quiesce", "copy", "criu-dump")
    )

    assert "200 MiB/s" in copy
    assert "40 ms" in copy
    assert copy.index("█") < dump.index("█") < len(copy.rstrip())
    assert len(dump) <= 110
    assert quiesce.rstrip()[-1] in "▏▎▍▌▋▊▉█"


def test_show_as_json_has_everything(shell: Shell, whole: Path) -> None:
    found = shell.json("show", str(whole))

    assert found["container"] == "c1"
    assert found["bytes"]["gpu_copied"] == 4 * BLOCK
    assert found["bytes"]["gpu_zero"] == BLOCK
    assert found["bytes"]["criu_memory"] == 6000
    assert [a["kept_bytes"] for a in found["allocations"]] == [2 * BLOCK, 2 * BLOCK]
    assert [(p["pid"], p["gpu_bytes"]) for p in found["processes"]] == [
        (1, 3 * BLOCK),
        (7, 2 * BLOCK),
        (9, 0),
    ]
    assert found["gpu_data"]["placement"] == "embedded"
    assert len(found["phases"]) == 3


def test_show_of_an_image_without_gpu_data(shell: Shell, plain: Path) -> None:
    assert "none beside the memory of the processes" in shell("show", str(plain))
    assert shell.json("show", "plain")["gpu_data"] is None


def test_show_says_where_the_data_is_and_where_not(shell: Shell, split: Path) -> None:
    assert "in the local store as c1-x\n" in shell("show", str(split))
    assert shell.json("show", str(split))["gpu_data"]["here"] is True
    shell.store.remove("c1-x")
    assert "NOT HERE" in shell("show", str(split))
    assert shell.json("show", str(split))["gpu_data"]["here"] is False


def test_show_of_a_local_snapshot(shell: Shell, split: Path) -> None:
    text = shell("show", "c1-x")

    assert f"image      {split}" in text
    assert "10.0 MiB in 2 allocations, in the local store as c1-x" in text
    assert [p["pid"] for p in shell.json("show", "c1-x")["processes"]] == [1, 7]


def test_only_the_largest_allocations_are_shown(
    shell: Shell, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("diapause.runtime.cli.snapshot.show._SHOWN", 1)

    assert "and 1 smaller ones (--all)" in shell("show", str(whole))
    assert "smaller" not in shell("show", "--all", str(whole))


def test_a_word_that_names_nothing(shell: Shell) -> None:
    shell("show", "nothing", code=1)

    assert "snapshot-unknown" in shell.err
    assert shell.out == ""
    shell("show", "./nothing", code=1)
    assert "snapshot-missing" in shell.err


def test_a_draft_is_no_snapshot_yet(shell: Shell, cut_off: Callable[[str], Path]) -> None:
    cut_off("c9")

    shell("show", "c9", code=1)
    assert "snapshot-not-finished" in shell.err


def test_list_shows_the_store_and_what_is_in_directories(
    shell: Shell, split: Path, whole: Path, cut_off: Callable[[str], Path]
) -> None:
    cut_off("c9")
    (shell.path / "plain file").write_text("")

    lines = [line.split() for line in shell("list", str(shell.path)).splitlines()]

    assert lines[0][0] == "NAME"
    assert [line[0] for line in lines[1:]] == ["c1-x", "c9", str(split), str(whole)]
    rows = shell.json("list", str(split))
    assert [(row["name"], row["fault"]) for row in rows] == [
        ("c1-x", ""), ("c9", "it was not finished"), (str(split), ""),
    ]  # fmt: skip
    assert rows[0]["gpu_bytes"] == 5 * BLOCK
    assert rows[0]["image"] == str(split)
    assert rows[2]["note"] == "GPU data in the local store as c1-x"


def test_list_goes_on_behind_a_damaged_image(shell: Shell, whole: Path, plain: Path) -> None:
    (plain / "core-1.img").unlink()

    rows = shell.json("list", str(shell.path))

    assert [(Path(row["name"]).name, row["fault"]) for row in rows] == [
        ("plain", "core-1.img is missing"), ("whole", ""),
    ]  # fmt: skip


def test_an_empty_store(shell: Shell) -> None:
    assert shell("list") == ""
    assert "empty" in shell.err
    assert shell.json("list") == []


@pytest.mark.parametrize(
    ("start", "length", "total", "columns", "drawn"),
    [
        (0, 100, 100, 10, "█" * 10),
        (50, 50, 100, 10, " " * 5 + "█" * 5),
        (0, 0, 100, 10, "▏"),
        (100, 0, 100, 10, " " * 9 + "▏"),
        (99, 50, 100, 10, " " * 9 + "█"),
        (0, 5.5, 100, 10, "▌"),
        (0, 0, 0, 10, ""),
    ],
)
def test_a_bar(start: float, length: float, total: float, columns: int, drawn: str) -> None:
    assert timeline.bar(start, length, total, columns) == drawn


def test_phases_that_do_not_say_when_they_began_follow_each_other() -> None:
    phases = [{"name": "a", "ms": 2, "bytes": 0}, {"name": "b", "ms": 3, "bytes": 1}]

    assert timeline.placed(phases) == [("a", 0, 2, 0), ("b", 2, 3, 1)]


def test_what_the_system_refuses_is_one_line(
    shell: Shell, plain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "/var/lib/diapause/snapshots")

    monkeypatch.setattr("os.listdir", refuse)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    shell("list", code=1)
    assert (
        shell.err == "diapause: /var/lib/diapause/snapshots: permission denied; run it as root [os-error]\n"
    )


def test_a_memory_dir_that_is_not_used_is_said(
    shell: Shell, split: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIAPAUSE_SNAPSHOT_MEMORY_DIR", "/proc/nothing")

    shell("list")
    assert "does not use its memory-dir: /proc/nothing: no such file or directory" in shell.err
