"""What a killed restore leaves behind is found and taken away; mounts are a fake, processes are real."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from diapause.runtime.engine import ending, halfway
from diapause.runtime.linux import mounts, proc

WRITER = (
    "import sys,time; f=open(sys.argv[1], sys.argv[2]); print(flush=True); time.sleep(float(sys.argv[3]))"
)


class Mounted:
    """A table of mount points; those that were detached, in order."""

    def __init__(self) -> None:
        self.points: list[str] = []
        self.detached: list[str] = []
        self.errors: dict[str, int] = {}

    def below(self, folders: list[str]) -> list[str]:
        return [point for point in self.points for folder in folders if f"{point}/".startswith(f"{folder}/")]

    def detach(self, point: str) -> None:
        if number := self.errors.get(point):
            raise OSError(number, os.strerror(number), point)
        self.points.reverse()
        self.points.remove(point)
        self.points.reverse()
        self.detached.append(point)


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Mounted:
    made = Mounted()
    monkeypatch.setattr(mounts, "below", made.below)
    monkeypatch.setattr(mounts, "detach", made.detach)
    return made


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts a process that has the log open; it has done so when the call returns."""
    started = []

    def start(mode: str = "a", seconds: float = 60) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-IS", "-c", WRITER, str(tmp_path / "restore.log"), mode, str(seconds)]
        process = subprocess.Popen(argv, stdout=subprocess.PIPE)
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline()
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def criu_root(path: Path) -> str:
    (path / "root/c1/criu-root").mkdir(parents=True, exist_ok=True)
    return str(path / "root/c1/criu-root")


def clear(path: Path, **facts: Any) -> None:
    halfway.clear(str(path / "root"), "c1", facts)


def test_facts_are_taken_before_runc_starts(table: Mounted, tmp_path: Path) -> None:
    (tmp_path / "real/rootfs").mkdir(parents=True)
    (tmp_path / "bundle").symlink_to("real")
    rootfs = str(tmp_path / "real/rootfs")
    table.points = [rootfs, f"{rootfs}/own", "/elsewhere"]
    config = {"root": {"path": "rootfs"}, "linux": {"cgroupsPath": "/pod/c1"}}
    (tmp_path / "bundle/config.json").write_text(json.dumps(config))
    request: Any = SimpleNamespace(bundle=str(tmp_path / "bundle"), work_path="", image_path=str(tmp_path))

    assert halfway.before(request) == {
        "log": f"{tmp_path}/restore.log",
        "rootfs": rootfs,
        "mounts": [f"{rootfs}/own"],
        "cgroup": "/pod/c1",
    }


def test_mounts_of_runc_are_detached_and_no_others(table: Mounted, tmp_path: Path) -> None:
    place = criu_root(tmp_path)
    rootfs = str(tmp_path / "rootfs")
    table.points = [
        rootfs, f"{rootfs}/own", f"{rootfs}/twice", place, f"{rootfs}/lib", f"{place}/own", f"{rootfs}/twice",
        "/elsewhere",
    ]  # fmt: skip

    clear(tmp_path, rootfs=rootfs, mounts=[f"{rootfs}/own", f"{rootfs}/twice"])

    assert table.detached == [f"{place}/own", place, f"{rootfs}/twice", f"{rootfs}/lib"]
    assert table.points == [rootfs, f"{rootfs}/own", f"{rootfs}/twice", "/elsewhere"]


def test_one_that_is_gone_already_does_not_matter(table: Mounted, tmp_path: Path) -> None:
    place = criu_root(tmp_path)
    table.points = [place, f"{place}/a"]
    table.errors = {f"{place}/a": 22}

    clear(tmp_path)

    assert table.detached == [place]


def test_one_that_stays_is_an_error(table: Mounted, tmp_path: Path) -> None:
    place = criu_root(tmp_path)
    table.points = [place]
    table.errors = {place: 1}

    with pytest.raises(PermissionError, match="criu-root"):
        clear(tmp_path)
    assert halfway.mounted(str(tmp_path / "root"), "c1") == [place]


def test_where_nothing_is_left_nothing_is_done(table: Mounted, tmp_path: Path) -> None:
    clear(tmp_path)
    clear(
        tmp_path, log=str(tmp_path / "restore.log"), rootfs=str(tmp_path), mounts=[], cgroup="", child=[1, 0]
    )
    assert table.detached == []


def test_criu_is_given_time_to_end_by_itself(table: Mounted, tmp_path: Path, writer: Any) -> None:
    process = writer(seconds=0.3)

    clear(tmp_path, log=str(tmp_path / "restore.log"))

    assert process.wait(0.5) == 0


def test_criu_that_does_not_end_is_killed(
    table: Mounted, tmp_path: Path, writer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(halfway, "_ENDS", 0.2)
    processes = [writer(), writer("r+"), writer()]

    clear(tmp_path, log=str(tmp_path / "restore.log"))

    assert [process.wait(1) for process in processes] == [-9] * 3


def test_whoever_reads_the_log_is_nobody_of_criu(
    table: Mounted, tmp_path: Path, writer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(halfway, "_ENDS", 0.2)
    (tmp_path / "restore.log").touch()
    process = writer("r")

    clear(tmp_path, log=str(tmp_path / "restore.log"))

    assert process.poll() is None


def test_a_container_that_runc_knows_has_no_criu(table: Mounted, tmp_path: Path, writer: Any) -> None:
    place = criu_root(tmp_path)
    table.points = [place]
    (tmp_path / "root/c1/state.json").touch()
    process = writer()

    clear(tmp_path, log=str(tmp_path / "restore.log"))

    assert process.poll() is None
    assert table.detached == [place]


def test_a_runc_that_lives_on_is_killed_first(table: Mounted, tmp_path: Path, writer: Any) -> None:
    process = writer()

    clear(tmp_path, child=[process.pid, proc.start_time(process.pid) + 1])
    assert process.poll() is None
    clear(tmp_path, child=[process.pid, proc.start_time(process.pid)])

    assert process.wait(1) == -9


def test_an_empty_cgroup_goes_with_it(
    table: Mounted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(halfway, "_CGROUPS", str(tmp_path / "cgroup"))
    for name in ("freezer/pod/c1", "memory/pod/c1/child", "pids/pod"):
        (tmp_path / "cgroup" / name).mkdir(parents=True)

    clear(tmp_path, cgroup="/pod/c1")
    clear(tmp_path, cgroup="system.slice:x:c1")

    left = sorted(str(path.relative_to(tmp_path / "cgroup")) for path in (tmp_path / "cgroup").rglob("*"))
    assert left == [
        "freezer", "freezer/pod", "memory", "memory/pod", "memory/pod/c1", "memory/pod/c1/child", "pids",
        "pids/pod",
    ]  # fmt: skip


@pytest.mark.parametrize("stays", [False, True])
def test_runc_deletes_only_when_the_mounts_are_gone(table: Mounted, engine_host: Any, stays: bool) -> None:
    place = str(engine_host.root / "c1/criu-root")
    os.makedirs(place)
    table.points = [place]
    table.errors = {place: 16} if stays else {}

    def end() -> None:
        runtime, args = str(engine_host.bin / "runc"), ["--root", str(engine_host.root)]
        ending.end(
            str(engine_host.root), "c1", "restore c1", runtime=runtime, args=args, env=os.environ, facts={}
        )

    if stays:
        with pytest.raises(OSError, match="criu-root"):
            end()
    else:
        end()
    assert [call[-3:] for call in engine_host.runc_calls] == [["delete", "--force", "c1"]][stays:]
