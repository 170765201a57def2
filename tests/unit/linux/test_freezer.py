"""The freezer's files, in a folder that looks like a cgroup."""

import os
from pathlib import Path

import pytest

from diapause.runtime.linux import freezer
from diapause.runtime.linux.deadline import Deadline


def version_1(path: Path) -> str:
    path.mkdir()
    (path / "freezer.state").write_text("THAWED\n")
    (path / "freezer.self_freezing").write_text("0\n")
    (path / "cgroup.procs").write_text(f"{os.getpid()}\n")
    return str(path)


def version_2(path: Path, *, frozen: int = 0) -> str:
    path.mkdir()
    (path / "cgroup.freeze").write_text(f"{frozen}\n")
    (path / "cgroup.events").write_text(f"populated 1\nfrozen {frozen}\n")
    (path / "cgroup.procs").write_text(f"{os.getpid()}\n")
    return str(path)


def test_version_1_is_found_by_its_controller(tmp_path: Path) -> None:
    path = version_1(tmp_path / "c")

    found = freezer.find({"freezer": path, "memory": "/other"}, os.getpid())
    found.freeze(Deadline.after(1))

    assert isinstance(found, freezer.FreezerV1)
    assert Path(path, "freezer.state").read_text() == "FROZEN"


def test_version_2_is_found_by_the_empty_name(tmp_path: Path) -> None:
    found = freezer.find({"": version_2(tmp_path / "c", frozen=1)}, os.getpid())

    assert isinstance(found, freezer.FreezerV2)
    assert found.frozen()


def test_a_cgroup_without_the_containers_process_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PermissionError):
        freezer.find({"": version_2(tmp_path / "c")}, 1)


def test_no_freezer_at_all_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        freezer.find({"memory": "/sys/fs/cgroup/memory/c"}, 1)


def test_tasks_that_do_not_freeze_are_thawed_again(tmp_path: Path) -> None:
    path = version_2(tmp_path / "c")

    with pytest.raises(TimeoutError):
        freezer.FreezerV2(path).freeze(Deadline.after(0.01))

    assert Path(path, "cgroup.freeze").read_text() == "0"


def test_processes_of_nested_cgroups_count(tmp_path: Path) -> None:
    path = version_2(tmp_path / "c")
    (tmp_path / "c" / "inner").mkdir()
    (tmp_path / "c" / "inner" / "cgroup.procs").write_text("7\n8\n")

    assert sorted(freezer.processes(path)) == sorted([7, 8, os.getpid()])


def test_a_cgroup_is_opened_again_by_what_it_is(tmp_path: Path) -> None:
    assert isinstance(freezer.reopen(version_1(tmp_path / "a")), freezer.FreezerV1)
    assert isinstance(freezer.reopen(version_2(tmp_path / "b")), freezer.FreezerV2)
