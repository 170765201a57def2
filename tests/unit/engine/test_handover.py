"""Checkpoint and restore by the libraries: memory changes hands, and comes back whatever fails."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from diapause.runtime.engine import control, libraries, moved, plan, processes
from diapause.runtime.engine.control import MemoryFlag
from diapause.runtime.engine.request import Settings
from diapause.runtime.errors import DiapauseError, FailedPrecondition, Internal, Unavailable
from diapause.runtime.linux.deadline import Deadline
from diapause.runtime.store import manifest, snapshot
from diapause.runtime.store.local import Local

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")

SIZES = ("4096", "2097152", "65536")
SAVED = ["begin", "watch", "take", "save"]
STEPS = ["launch", "gate", "quiesce", "hand-over", "save", "lock", "residue", "still", "space"]


def memory(pid: int) -> tuple[control.Memory, ...]:
    """What the library in the process says."""
    fd = os.pidfd_open(pid)
    try:
        with control.connect(pid, fd, Deadline.after(5)) as channel:
            return channel.memory(Deadline.after(5))
    finally:
        os.close(fd)


def gate(pid: int) -> int:
    page = control.find(pid)
    assert page is not None
    return page.gate


def as_before(host: Any, pid: int, *, frozen: bool = False) -> None:
    """The container goes on as it was found, with its memory and open gates."""
    assert host.goes_on(pid)
    assert host.driver_state(pid) == 0
    assert host.frozen is frozen
    assert not host.journaled
    assert gate(pid) == 0
    assert len(memory(pid)) == len(SIZES)
    assert all(one.flags & MemoryFlag.ATTACHED for one in memory(pid))


@pytest.mark.parametrize("frozen", [False, True])
def test_a_container_ends_with_a_complete_snapshot(engine_host: Any, frozen: bool) -> None:
    pid = engine_host.start_library(*SIZES)
    engine_host.freezer(frozen=frozen)

    assert engine_host.checkpoint() == 0

    assert engine_host.driver_calls == ["lock", "checkpoint"]
    assert engine_host.gpud_calls == [*SAVED, "wait", "forget"]
    document = snapshot.verify(str(engine_host.image))
    assert document.raw["evacuated"] == "intercept"
    assert document.raw["features"]["required"] == [manifest.GPU_DATA]
    assert document.gpu_data is not None
    assert document.gpu_data["bytes"] == sum(map(int, SIZES))
    assert document.gpu_data["allocations"] == len(SIZES)
    assert [(p.pid, p.gpu) for p in document.processes] == [(pid, True)]
    names = [phase["name"] for phase in document.phases]
    assert [*STEPS, "criu-dump"] == [name for name in names if name in (*STEPS, "criu-dump")]


@pytest.mark.parametrize("frozen", [False, True])
def test_a_container_that_is_left_running_goes_on_as_it_was_found(engine_host: Any, frozen: bool) -> None:
    pid = engine_host.start_library(*SIZES)
    engine_host.freezer(frozen=frozen)

    assert engine_host.checkpoint(leave_running=True) == 0

    assert engine_host.driver_calls == ["lock", "checkpoint", "restore", "unlock"]
    assert "forget" not in engine_host.gpud_calls
    snapshot.verify(str(engine_host.image))
    as_before(engine_host, pid, frozen=frozen)


def test_held_threads_that_the_library_needs_are_let_go(engine_host: Any) -> None:
    pid = engine_host.start_library("--unnamed", *SIZES)
    engine_host.freezer(frozen=True)

    assert engine_host.checkpoint(leave_running=True) == 0

    as_before(engine_host, pid, frozen=True)


def test_memory_that_a_controller_brought_back_is_saved_again_from_its_fds(engine_host: Any) -> None:
    pid = engine_host.start_library(*SIZES)
    engine_host.checkpoint(leave_running=True)

    assert engine_host.checkpoint(leave_running=True) == 0

    assert engine_host.gpud_calls.count("give") == 1
    as_before(engine_host, pid)
    assert all(one.flags & MemoryFlag.IMPORTED for one in memory(pid))


def test_memory_whose_controller_has_gone_finds_a_new_home_first(engine_host: Any) -> None:
    pid = engine_host.start_library(*SIZES)
    engine_host.checkpoint(leave_running=True)
    engine_host.helpers[0].kill()
    engine_host.helpers[0].wait()
    engine_host.start_gpud()

    assert engine_host.checkpoint(leave_running=True) == 0

    as_before(engine_host, pid)


def test_an_old_library_goes_the_way_of_the_driver(engine_host: Any) -> None:
    pid = engine_host.start_library("--old", *SIZES)

    assert engine_host.checkpoint(leave_running=True) == 0

    assert engine_host.gpud_calls == []
    assert snapshot.verify(str(engine_host.image)).raw["evacuated"] == "driver"
    assert engine_host.goes_on(pid)


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("what", ["managed_count", "foreign_count", "ipc_opened", "multicast"])
def test_what_cannot_change_hands_goes_the_way_of_the_driver(
    engine_host: Any, what: str, frozen: bool
) -> None:
    pid = engine_host.start_library(f"{what}=1", *SIZES)
    engine_host.freezer(frozen=frozen)

    assert engine_host.checkpoint(leave_running=True) == 0

    assert "take" not in engine_host.gpud_calls
    assert snapshot.verify(str(engine_host.image)).raw["evacuated"] == "driver"
    as_before(engine_host, pid, frozen=frozen)


@pytest.mark.parametrize("frozen", [False, True])
def test_memory_that_has_changed_hands_is_not_left_to_the_driver(engine_host: Any, frozen: bool) -> None:
    pid = engine_host.start_library("multicast=1", *SIZES)
    moved.note(engine_host.container.key)
    engine_host.freezer(frozen=frozen)

    with pytest.raises(Unavailable) as caught:
        engine_host.checkpoint()

    assert caught.value.code == "gpu-memory-moved"
    assert engine_host.driver_calls == []
    as_before(engine_host, pid, frozen=frozen)


@pytest.mark.parametrize("frozen", [False, True])
def test_it_is_refused_where_this_engine_was_asked_for_by_name(engine_host: Any, frozen: bool) -> None:
    engine_host.explicit = True
    pid = engine_host.start_library("managed_count=1", *SIZES)
    engine_host.freezer(frozen=frozen)

    with pytest.raises(FailedPrecondition) as caught:
        engine_host.checkpoint()

    assert caught.value.code == "gpu-memory-managed"
    assert engine_host.driver_calls == []
    as_before(engine_host, pid, frozen=frozen)


def test_a_gpu_without_a_controller_is_left_to_the_driver(engine_host: Any) -> None:
    engine_host.start_library(*SIZES)
    engine_host.gpud_fails("hello fail")

    assert engine_host.checkpoint(leave_running=True) == 0

    assert snapshot.verify(str(engine_host.image)).raw["evacuated"] == "driver"


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("how", ["fail", "die"])
@pytest.mark.parametrize("op", ["begin", "take", "watch", "save", "wait"])
def test_a_controller_that_fails_costs_nothing_but_the_snapshot(
    engine_host: Any, op: str, how: str, frozen: bool
) -> None:
    pid = engine_host.start_library(*SIZES)
    engine_host.freezer(frozen=frozen)
    engine_host.gpud_fails(f"{op} {how}")

    with pytest.raises(Unavailable) as caught:
        engine_host.checkpoint()

    assert caught.value.code == ("gpud-gone" if how == "die" else "gpu-memory")
    as_before(engine_host, pid, frozen=frozen)
    assert not engine_host.committed
    if how == "die":
        engine_host.start_gpud()
    assert engine_host.checkpoint() == 0


@pytest.mark.parametrize("fault", ["lock fail", "checkpoint fail", "lock code 600"])
def test_a_driver_call_that_fails_is_undone(engine_host: Any, fault: str) -> None:
    pid = engine_host.start_library(*SIZES)
    engine_host.driver_fails(fault)

    with pytest.raises((Internal, Unavailable)):
        engine_host.checkpoint()

    as_before(engine_host, pid)


@pytest.mark.parametrize("phase", ["checkpoint", "dump", "after-commit"])
def test_a_dump_that_fails_is_undone(engine_host: Any, phase: str) -> None:
    pid = engine_host.start_library(*SIZES)
    engine_host.fails(phase)

    with pytest.raises(Internal):
        engine_host.checkpoint()

    as_before(engine_host, pid)
    assert not engine_host.committed
    assert engine_host.gpud_calls[-1] == "forget"


@pytest.mark.parametrize("frozen", [False, True])
def test_a_process_that_does_not_come_to_rest_goes_on(engine_host: Any, frozen: bool) -> None:
    pid = engine_host.start_library("--busy", *SIZES)
    engine_host.freezer(frozen=frozen)

    with pytest.raises(Unavailable) as caught:
        engine_host.checkpoint()

    assert caught.value.code == "control-busy"
    as_before(engine_host, pid, frozen=frozen)


# -- engines that are killed ------------------------------------------------------------------------------


def killed_after(monkeypatch: pytest.MonkeyPatch, step: str, *, both: bool, before: bool) -> None:
    """Let the engine be killed before or after a step, together with its caller if `both`."""
    real = plan.Plan._timed

    def kill() -> None:
        if both:
            os.kill(os.getppid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    def timed(self: plan.Plan, name: str, call: Any) -> None:
        if name == step and before:
            kill()
        real(self, name, call)
        if name == step:
            kill()

    monkeypatch.setattr(plan.Plan, "_timed", timed)


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("frozen", [False, True], ids=["running", "frozen"])
@pytest.mark.parametrize("step", STEPS)
def test_an_engine_that_is_killed_is_undone_by_its_caller(
    engine_host: Any, monkeypatch: pytest.MonkeyPatch, step: str, frozen: bool, before: bool
) -> None:
    pid = engine_host.start_library(*SIZES)
    engine_host.freezer(frozen=frozen)
    killed_after(monkeypatch, step, both=False, before=before)

    with pytest.raises(Internal) as caught:
        engine_host.checkpoint()

    assert caught.value.code == "engine-died"
    assert getattr(caught.value, "__notes__", []) == []
    as_before(engine_host, pid, frozen=frozen)
    monkeypatch.undo()


@pytest.mark.parametrize("step", STEPS)
def test_engine_and_caller_that_are_killed_are_undone_by_the_next_verb(
    engine_host: Any, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    pid = engine_host.start_library(*SIZES)
    engine_host.freezer(frozen=True)
    with monkeypatch.context() as killing:
        killed_after(killing, step, both=True, before=False)
        engine_host.in_a_caller_that_dies(engine_host.checkpoint)
    assert engine_host.journaled

    engine_host.recover()

    as_before(engine_host, pid, frozen=True)


def test_a_container_that_goes_on_after_its_engine_died_keeps_its_snapshot(
    engine_host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = engine_host.start_library(*SIZES)
    killed_after(monkeypatch, "undo-still", both=False, before=True)

    assert engine_host.checkpoint(leave_running=True) == 0

    snapshot.verify(str(engine_host.image))
    as_before(engine_host, pid)


def test_memory_that_died_with_engine_and_controller_keeps_the_gates_closed(
    engine_host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has lost its memory must not run on; that is said, and the container can still be deleted."""
    pid = engine_host.start_library(*SIZES)
    with monkeypatch.context() as killing:
        killed_after(killing, "residue", both=True, before=False)
        engine_host.in_a_caller_that_dies(engine_host.checkpoint)
    engine_host.helpers[0].kill()
    engine_host.helpers[0].wait()

    with pytest.raises(Internal) as caught:
        engine_host.recover()

    assert caught.value.code == "gpu-memory-lost"
    assert gate(pid) != 0
    assert engine_host.journaled


# -- the local store --------------------------------------------------------------------------------------


def in_the_store(host: Any, tmp_path: Path, **more: Any) -> dict[str, Any]:
    """A checkpoint whose image a client will pack, and whose GPU memory goes into the store."""
    host.image = host.image.with_name("ctrd-checkpoint17")
    settings = {"placement": "local", "store_dir": str(tmp_path / "store"), "checkpoint_timeout": 1.0}
    return {"settings": Settings(**{**settings, **more})}


@pytest.mark.parametrize(("fsync", "synced"), [("auto", True), ("always", True), ("never", False)])
def test_what_stays_in_the_store_outlives_a_crash(
    engine_host: Any, tmp_path: Path, fsync: str, synced: bool
) -> None:
    """Although the image directory itself is packed at once, and not synced."""
    engine_host.start_library(*SIZES)

    assert engine_host.checkpoint(**in_the_store(engine_host, tmp_path, fsync=fsync)) == 0

    assert (engine_host.driver / "gpud-sync").read_text() == str(synced)
    document = snapshot.verify(str(engine_host.image))
    [found] = Local(str(tmp_path / "store")).all()
    assert document.gpu_data is not None
    assert (document.gpu_data["placement"], document.gpu_data["name"]) == ("local", found.name)
    assert (found.busy, found.fault) == (False, "")


@pytest.mark.parametrize("fault", ["dump", "wait"])
def test_a_failed_checkpoint_leaves_nothing_in_the_store(
    engine_host: Any, tmp_path: Path, fault: str
) -> None:
    pid = engine_host.start_library(*SIZES)
    if fault == "dump":
        engine_host.fails("dump")
    else:
        engine_host.gpud_fails("wait fail")

    with pytest.raises(DiapauseError):
        engine_host.checkpoint(**in_the_store(engine_host, tmp_path))

    as_before(engine_host, pid)
    assert Local(str(tmp_path / "store")).all() == []


# -- restore ----------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library of these tests answers in a thread of the program, held at first like any other."""
    monkeypatch.setattr(libraries, "ALONE", 0.3)


@pytest.fixture
def saved(engine_host: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A host with the snapshot of a container that has ended. Its process sees itself as number 1."""
    monkeypatch.setattr(libraries, "inner", lambda pid, level: 1)
    engine_host.start_library(*SIZES)
    engine_host.checkpoint()
    engine_host.process.wait()
    raw = json.loads((engine_host.image / "diapause.json").read_text())
    raw["processes"][0]["pid"] = 1
    (engine_host.image / "diapause.json").write_bytes(manifest.Manifest(raw).encode())
    monkeypatch.setattr(processes, "by_inner_pid", lambda _, init: {1: init})
    for name in ("calls", "gpud-calls"):
        (engine_host.driver / name).unlink()
    library = Path(__file__).parents[2] / "fakes" / "engine_library.py"
    program = [sys.executable, str(library), "--away", *SIZES]
    (engine_host.root / "program").write_text(json.dumps(program))
    return engine_host


def nothing_is_left(host: Any, code: str, kind: type[DiapauseError]) -> None:
    with pytest.raises(kind) as caught:
        host.restore()
    assert caught.value.code == code
    assert not os.path.exists(host.container.directory)
    assert not os.path.exists(host.root / "c1" / "state.json")
    for pid in host.cgroup.joinpath("cgroup.procs").read_text().split():
        assert not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text().split()


def test_a_container_comes_back_with_its_memory_and_runs(saved: Any) -> None:
    assert saved.restore() == 0

    assert saved.driver_calls == ["restore", "unlock"]
    assert saved.gpud_calls == ["forget", "load", "wait", "give", "watch"]
    saved.freezer(frozen=False)  # as the container's end left it
    as_before(saved, saved.pid)


def test_a_thread_that_a_restored_library_needs_runs_behind_the_gates(
    saved: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = json.loads((saved.root / "program").read_text())
    (saved.root / "program").write_text(json.dumps([*program, "--unnamed"]))
    monkeypatch.setattr(libraries, "ALONE", 0.3)

    assert saved.restore() == 0

    saved.freezer(frozen=False)
    as_before(saved, saved.pid)


@pytest.mark.parametrize("how", ["fail", "die"])
@pytest.mark.parametrize("op", ["load", "wait", "give", "watch"])
def test_a_controller_that_fails_leaves_nothing_of_the_container(saved: Any, op: str, how: str) -> None:
    saved.gpud_fails(f"{op} {how}")

    nothing_is_left(saved, "gpud-gone" if how == "die" else "gpu-memory", Unavailable)


def test_a_driver_that_fails_frees_the_memory_again(saved: Any) -> None:
    saved.driver_fails("restore fail")

    nothing_is_left(saved, "driver-restore", Internal)

    assert saved.gpud_calls[-1] == "forget"


def test_a_process_with_other_memory_than_was_saved_is_ended(saved: Any) -> None:
    program = json.loads((saved.root / "program").read_text())
    (saved.root / "program").write_text(json.dumps([*program, "8192"]))

    nothing_is_left(saved, "gpu-memory-lost", Internal)


@pytest.mark.parametrize("step", ["fetch", "load", "reload", "attach"])
def test_a_restore_whose_engine_was_killed_leaves_nothing(
    saved: Any, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    with monkeypatch.context() as killing:
        killed_after(killing, step, both=False, before=False)
        with pytest.raises(Internal):
            saved.restore()

    assert not saved.journaled
    assert not os.path.exists(saved.root / "c1" / "state.json")
    assert saved.gpud_calls[-1] == "forget"
