"""Checkpoint: what is done in which order, and that a failure anywhere leaves the container as it was."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from diapause.runtime.engine import lease, plan, processes
from diapause.runtime.engine.request import Settings
from diapause.runtime.errors import DiapauseError, FailedPrecondition, Internal, InvalidArgument, Unavailable
from diapause.runtime.store import snapshot
from diapause.runtime.store.manifest import Process

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")

ROUND_TRIP = ["lock", "checkpoint", "restore", "unlock"]


def untouched(host: Any, pid: int, *, frozen: bool = False) -> None:
    """The container goes on as it was found."""
    assert host.goes_on(pid)
    assert host.driver_state(pid) == 0
    assert host.frozen is frozen
    assert not host.journaled
    assert not host.committed


def test_a_container_ends_with_a_complete_snapshot(engine_host: Any) -> None:
    pid = engine_host.start()

    assert engine_host.checkpoint() == 0

    assert engine_host.driver_calls == ["lock", "checkpoint"]
    document = snapshot.verify(str(engine_host.image))
    assert [(p.pid, p.gpu) for p in document.processes] == [(pid, True)]
    assert document.driver is not None
    assert document.raw["tools"]["criu"] == "4.2.1"
    assert document.raw["tools"]["runc"] == "runc version 9.9.9"
    assert not os.path.exists(engine_host.container.directory)


@pytest.mark.parametrize("frozen", [False, True])
def test_a_container_that_is_left_running_goes_on_as_it_was_found(engine_host: Any, frozen: bool) -> None:
    pid = engine_host.start()
    engine_host.freezer(frozen=frozen)

    assert engine_host.checkpoint(leave_running=True) == 0

    assert engine_host.driver_calls == ROUND_TRIP
    snapshot.verify(str(engine_host.image))
    engine_host.image.joinpath("diapause.json").unlink()
    untouched(engine_host, pid, frozen=frozen)


def test_a_container_without_gpu_processes_needs_no_driver(engine_host: Any) -> None:
    pid = engine_host.start(gpu=False)

    assert engine_host.checkpoint(leave_running=True) == 0

    assert engine_host.driver_calls == []
    document = snapshot.verify(str(engine_host.image))
    assert document.driver is None
    assert document.raw["evacuated"] == "none"
    assert engine_host.goes_on(pid)


def test_flags_of_the_dump_are_remembered(engine_host: Any) -> None:
    engine_host.start()

    engine_host.checkpoint(flags=["--file-locks"], file_locks=True, tcp_established=True)

    assert snapshot.verify(str(engine_host.image)).flags == ["tcp-established", "file-locks"]


def test_a_second_dump_into_the_same_directory_replaces_the_first(engine_host: Any) -> None:
    engine_host.start()
    engine_host.checkpoint(leave_running=True)
    engine_host.image.joinpath("pages-9.img").write_text("of a process that is gone")

    engine_host.checkpoint(leave_running=True)

    names = [file.name for file in snapshot.verify(str(engine_host.image)).files]
    assert "pages-9.img" not in names


def test_phases_are_logged_with_their_time(engine_host: Any) -> None:
    engine_host.start()
    log = engine_host.path / "log.json"

    engine_host.checkpoint(log=str(log), log_format="json")

    records = [json.loads(line) for line in log.read_text().splitlines()]
    assert {"prepare", "lock", "hold", "evacuate", "criu-dump", "total"} <= {r["phase"] for r in records}
    assert all(r["level"] == "info" and r["ms"] >= 0 and r["bytes"] >= 0 for r in records)


def test_criu_begins_when_the_gpu_is_empty(engine_host: Any) -> None:
    engine_host.start()
    engine_host.driver_fails("checkpoint fail")

    with pytest.raises(Internal, match="driver-checkpoint"):
        engine_host.checkpoint()

    assert [call for call in engine_host.runc_calls if "checkpoint" in call]  # it was started ahead
    assert not list(engine_host.image.glob("*.img"))
    assert "Pre dump script failed" in (engine_host.bundle / "dump.log").read_text()


def test_a_refusal_of_the_driver_leaves_an_older_snapshot_as_it_was(engine_host: Any) -> None:
    engine_host.start()
    engine_host.checkpoint(leave_running=True)
    engine_host.driver_fails("lock fail")

    with pytest.raises(Internal, match="driver-lock"):
        engine_host.checkpoint()

    assert len([call for call in engine_host.runc_calls if "checkpoint" in call]) == 1
    snapshot.verify(str(engine_host.image))


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize(
    ("fault", "code", "calls"),
    [
        ("lock fail", "driver-lock", ["lock"]),
        ("lock code 600", "lock-timeout", ["lock"]),
        ("checkpoint fail", "driver-checkpoint", ["lock", "checkpoint", "unlock"]),
        ("checkpoint code 801", "driver-not-supported", ["lock", "checkpoint", "unlock"]),
        ("checkpoint hang", "driver-hung", ["lock", "checkpoint", "unlock"]),
    ],
)
def test_a_driver_call_that_fails_is_undone(
    engine_host: Any, fault: str, code: str, calls: list[str], frozen: bool
) -> None:
    pid = engine_host.start()
    engine_host.freezer(frozen=frozen)
    engine_host.driver_fails(fault)

    with pytest.raises(DiapauseError) as caught:
        engine_host.checkpoint()

    assert caught.value.code == code
    assert f"process {pid} (sleep)" in str(caught.value)
    assert engine_host.driver_calls == calls
    untouched(engine_host, pid, frozen=frozen)


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("phase", ["checkpoint", "dump", "after-commit"])
def test_a_criu_that_fails_is_undone_and_its_log_survives(engine_host: Any, phase: str, frozen: bool) -> None:
    pid = engine_host.start()
    engine_host.freezer(frozen=frozen)
    engine_host.fails(phase)

    with pytest.raises(Internal) as caught:
        engine_host.checkpoint()

    assert caught.value.code == "criu-failed"
    assert "criu: " in caught.value.why
    assert "Dumping FAILED" not in caught.value.why
    with open(caught.value.log, encoding="utf-8") as log:
        assert "odd" in log.read()
    assert caught.value.__notes__ == ["criu failed: type DUMP errno 0"]
    assert engine_host.driver_calls == ROUND_TRIP
    untouched(engine_host, pid, frozen=frozen)


def test_a_commit_that_fails_keeps_the_container_alive(
    engine_host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = engine_host.start()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "no space left on device", "diapause.json")

    monkeypatch.setattr(snapshot, "commit", full)
    with pytest.raises(OSError, match="no space"):
        engine_host.checkpoint()

    untouched(engine_host, pid)


def test_a_container_that_does_not_come_back_is_reported_and_its_snapshot_kept(engine_host: Any) -> None:
    pid = engine_host.start()
    engine_host.driver_fails("restore fail")

    with pytest.raises(Internal) as caught:
        engine_host.checkpoint(leave_running=True)

    assert caught.value.code == "resume-failed"
    assert f"cannot restore process {pid}" in str(caught.value)
    assert f"restore it from the snapshot in {engine_host.image} " in str(caught.value)
    snapshot.verify(str(engine_host.image))
    assert engine_host.goes_on(pid)


def test_what_a_client_would_delete_is_kept_and_named(engine_host: Any, tmp_path: Path) -> None:
    pid = engine_host.start()
    engine_host.driver_fails("unlock fail", "unlock fail")
    engine_host.image = engine_host.image.with_name("ctrd-checkpoint123")
    settings = Settings(checkpoint_timeout=1, restore_timeout=1, store_dir=str(tmp_path / "store"))

    with pytest.raises(Internal) as caught:
        engine_host.checkpoint(leave_running=True, settings=settings)
    shutil.rmtree(engine_host.image)  # as containerd does

    [kept] = (path for path in (tmp_path / "store").iterdir() if path.is_dir())
    assert f"restore it from the snapshot in {kept} " in str(caught.value)
    snapshot.verify(str(kept))
    with pytest.raises(Internal, match=str(kept)):  # the next command tries again, and keeps no second copy
        engine_host.recover()
    assert [path for path in (tmp_path / "store").iterdir() if path.is_dir()] == [kept]
    assert engine_host.goes_on(pid)


def test_a_container_that_has_ended_leaves_its_snapshot_whatever_runc_says(
    engine_host: Any, tmp_path: Path
) -> None:
    """The client takes it for a failure, and deletes the only copy."""
    engine_host.start()
    engine_host.fails("ended")
    engine_host.image = engine_host.image.with_name("ctrd-checkpoint123")
    settings = Settings(checkpoint_timeout=1, restore_timeout=1, store_dir=str(tmp_path / "store"))

    with pytest.raises(Internal) as caught:
        engine_host.checkpoint(settings=settings)

    [kept] = (path for path in (tmp_path / "store").iterdir() if path.is_dir())
    assert caught.value.code == "runc-failed-late"
    assert f"restore it from the snapshot in {kept} " in str(caught.value)
    assert caught.value.__notes__ == ["criu failed: type DUMP errno 0"]
    snapshot.verify(str(kept))
    assert not engine_host.journaled


def test_what_cannot_be_kept_is_said(engine_host: Any, tmp_path: Path) -> None:
    engine_host.start()
    engine_host.driver_fails("restore fail")
    engine_host.image = engine_host.image.with_name("ctrd-checkpoint123")
    (tmp_path / "store").write_text("in the way")
    settings = Settings(checkpoint_timeout=1, restore_timeout=1, store_dir=str(tmp_path / "store"))

    with pytest.raises(Internal, match=r"could not be kept \(it is no directory\)") as caught:
        engine_host.checkpoint(leave_running=True, settings=settings)
    assert caught.value.code == "resume-failed"


REFUSALS = {
    "criu-too-old": lambda host: host.criu("4.1.1"),
    "criu-missing": lambda host: host.bin.joinpath("criu").unlink(),
    "container-missing": lambda host: host.root.joinpath("c1", "state.json").unlink(),
    "no-freezer": lambda host: host.cgroup.joinpath("cgroup.procs").write_text("1\n"),
    "image-path": lambda host: host.image.write_text("a file"),
    "driver-unusable": lambda host: host.driver_fails("init 100"),
}


@pytest.mark.parametrize("code", REFUSALS)
def test_what_cannot_work_is_refused_before_anything_is_touched(engine_host: Any, code: str) -> None:
    pid = engine_host.start()
    REFUSALS[code](engine_host)

    with pytest.raises(DiapauseError) as caught:
        engine_host.checkpoint()

    assert caught.value.code == code
    assert caught.value.todo
    assert engine_host.driver_calls == []
    assert engine_host.goes_on(pid)
    assert not engine_host.journaled


def test_a_refused_criu_names_the_version_that_works(engine_host: Any) -> None:
    engine_host.start()
    engine_host.criu("3.17.1")

    with pytest.raises(FailedPrecondition, match=r"version 3\.17\.1, needed is 4\.2 or later"):
        engine_host.checkpoint()


def test_a_process_that_the_driver_does_not_know_is_refused(engine_host: Any) -> None:
    pid = engine_host.start()
    (engine_host.driver / f"state-{pid}").unlink()

    with pytest.raises(FailedPrecondition, match="holds a GPU device that the driver cannot save") as caught:
        engine_host.checkpoint()

    assert caught.value.code == "gpu-process-unsupported"
    assert engine_host.goes_on(pid)
    assert not engine_host.journaled


@pytest.mark.parametrize("state", [1, 2, 3])
def test_a_process_that_another_tool_has_in_hand_is_refused(engine_host: Any, state: int) -> None:
    pid = engine_host.start()
    (engine_host.driver / f"state-{pid}").write_text(str(state))

    with pytest.raises(DiapauseError) as caught:
        engine_host.checkpoint()

    assert caught.value.code == "gpu-process-state"
    assert engine_host.goes_on(pid)


def test_an_intercepted_container_has_our_library_in_every_gpu_process(engine_host: Any) -> None:
    """Where that engine was asked for by name; otherwise the driver does it."""
    pid = engine_host.start()
    engine_host.engine, engine_host.explicit = "intercept", True

    with pytest.raises(FailedPrecondition) as caught:
        engine_host.checkpoint()

    assert caught.value.code == "gpu-process-without-library"
    untouched(engine_host, pid)
    engine_host.explicit = False
    assert engine_host.checkpoint(leave_running=True) == 0
    assert snapshot.verify(str(engine_host.image)).raw["evacuated"] == "driver"


def test_a_container_with_a_foreign_criu_configuration_is_refused(engine_host: Any) -> None:
    engine_host.start()
    path = engine_host.root / "c1" / "state.json"
    path.write_text(path.read_text().replace("criu.conf", "other.conf"))

    with pytest.raises(FailedPrecondition) as caught:
        engine_host.checkpoint()

    assert caught.value.code == "criu-config-not-ours"


@pytest.mark.parametrize("flag", ["--parent-path=../a", "--lazy-pages", "-auto-dedup"])
def test_flags_that_make_a_snapshot_incomplete_are_refused(engine_host: Any, flag: str) -> None:
    engine_host.start()

    with pytest.raises(InvalidArgument, match="is not supported"):
        engine_host.checkpoint(flags=[flag])


def test_a_dump_that_does_not_fit_is_refused(engine_host: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pid = engine_host.start()
    real = os.statvfs
    monkeypatch.setattr(os, "statvfs", lambda path: os.statvfs_result((*real(path)[:4], 1, *real(path)[5:])))

    with pytest.raises(FailedPrecondition) as caught:
        engine_host.checkpoint()

    assert caught.value.code == "no-space"
    untouched(engine_host, pid)


def test_a_cgroup_with_two_first_processes_is_refused(
    engine_host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = engine_host.start()
    twice = [Process(pid=1, comm="counter", gpu=False, stopped=False)] * 2
    monkeypatch.setattr(processes, "listed", lambda *_: twice)

    with pytest.raises(FailedPrecondition) as caught:
        engine_host.checkpoint()

    assert caught.value.code == "cgroup-shared"
    untouched(engine_host, pid)


def test_a_second_operation_on_the_container_is_refused(engine_host: Any) -> None:
    pid = engine_host.start()
    holder = f"checkpoint, process {os.getpid()}"
    with (
        lease.take(engine_host.container, "checkpoint"),
        pytest.raises(Unavailable, match=holder) as caught,
    ):
        engine_host.checkpoint()

    assert caught.value.code == "container-busy"
    untouched(engine_host, pid)


@pytest.mark.parametrize("step", ["thaw", "lock", "hold", "evacuate", "seal", "space"])
@pytest.mark.parametrize("frozen", [False, True])
def test_a_signal_between_two_steps_is_undone(
    engine_host: Any, monkeypatch: pytest.MonkeyPatch, step: str, frozen: bool
) -> None:
    pid = engine_host.start()
    engine_host.freezer(frozen=frozen)
    real = plan.Plan._timed

    def interrupted(self: plan.Plan, name: str, call: Any) -> None:
        real(self, name, call)
        if name == step:
            os.kill(os.getpid(), 15)

    monkeypatch.setattr(plan.Plan, "_timed", interrupted)
    with pytest.raises(Internal, match="interrupted by SIGTERM"):
        engine_host.checkpoint()

    untouched(engine_host, pid, frozen=frozen)
