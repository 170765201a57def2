"""An engine that is killed at any step: the container comes back, or the operation is completed."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from diapause.runtime.engine import journal, plan
from diapause.runtime.engine.request import Settings
from diapause.runtime.engine.steps.dump import Dump
from diapause.runtime.errors import Internal, Unavailable
from diapause.runtime.store import snapshot

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")

STEPS = ["thaw", "lock", "hold", "evacuate", "seal", "space"]


def killed_after(
    monkeypatch: pytest.MonkeyPatch, step: str, *, both: bool = False, before: bool = False
) -> None:
    """Let the engine be killed at a step, together with its caller if `both`."""
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


def as_before(host: Any, pid: int, *, frozen: bool) -> None:
    assert host.goes_on(pid)
    assert host.driver_state(pid) == 0
    assert host.frozen is frozen
    assert not host.journaled


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("step", STEPS)
def test_the_caller_undoes_what_a_killed_engine_did(
    engine_host: Any, monkeypatch: pytest.MonkeyPatch, step: str, frozen: bool
) -> None:
    pid = engine_host.start()
    engine_host.freezer(frozen=frozen)
    killed_after(monkeypatch, step)

    with pytest.raises(Internal, match="what it did has been undone") as caught:
        engine_host.checkpoint()

    assert caught.value.code == "engine-died"
    as_before(engine_host, pid, frozen=frozen)
    assert not engine_host.committed


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("step", STEPS)
def test_the_next_verb_undoes_what_a_killed_engine_and_caller_did(
    engine_host: Any, monkeypatch: pytest.MonkeyPatch, step: str, frozen: bool
) -> None:
    pid = engine_host.start()
    engine_host.freezer(frozen=frozen)
    killed_after(monkeypatch, step, both=True)
    engine_host.in_a_caller_that_dies(engine_host.checkpoint)
    assert engine_host.journaled

    engine_host.recover()

    as_before(engine_host, pid, frozen=frozen)


@pytest.mark.parametrize("step", ["undo-seal", "undo-evacuate", "undo-lock", "undo-thaw"])
def test_a_committed_checkpoint_that_leaves_running_is_completed(
    engine_host: Any, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    pid = engine_host.start()
    killed_after(monkeypatch, step)

    assert engine_host.checkpoint(leave_running=True) == 0

    as_before(engine_host, pid, frozen=False)
    snapshot.verify(str(engine_host.image))


def test_a_container_that_the_dump_ended_stays_ended(
    engine_host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine_host.start()
    killed_after(monkeypatch, "dump")

    assert engine_host.checkpoint() == 0

    snapshot.verify(str(engine_host.image))
    assert not os.path.exists(engine_host.container.directory)


def test_a_snapshot_whose_container_lives_is_revoked(
    engine_host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = engine_host.start()
    engine_host.fails("after-commit")
    real = Dump.execute

    def killed(self: Dump) -> None:
        try:
            real(self)
        finally:
            os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(Dump, "execute", killed)
    with pytest.raises(Internal):
        engine_host.checkpoint()

    as_before(engine_host, pid, frozen=False)
    assert not engine_host.committed


def test_a_journal_is_replayed_before_the_next_checkpoint(
    engine_host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = engine_host.start()
    with monkeypatch.context() as patch:
        killed_after(patch, "evacuate", both=True)
        engine_host.in_a_caller_that_dies(engine_host.checkpoint)
    assert engine_host.driver_state(pid) == 2

    assert engine_host.checkpoint(leave_running=True) == 0

    as_before(engine_host, pid, frozen=False)


def test_nothing_is_done_while_an_engine_is_at_work(engine_host: Any) -> None:
    from diapause.runtime.engine import lease

    engine_host.start()
    journal.Journal(f"{engine_host.container.directory}/journal").begin("thaw")
    with lease.take(engine_host.container, "checkpoint"), pytest.raises(Unavailable):
        engine_host.recover()
    assert engine_host.journaled


def test_without_a_journal_there_is_nothing_to_do(engine_host: Any) -> None:
    engine_host.start()
    engine_host.recover()


def test_a_journal_exists_from_the_first_step_on(tmp_path: Any) -> None:
    record = journal.Journal(str(tmp_path / "journal"))
    record.note(operation="checkpoint")
    assert not record.exists

    record.begin("thaw")
    assert record.exists
    record.remove()
    assert not record.exists


def test_a_line_that_was_cut_off_does_not_count(tmp_path: Any) -> None:
    path = tmp_path / "journal"
    record = journal.Journal(str(path))
    record.note(operation="checkpoint", frozen=True)
    assert not path.exists()
    record.begin("thaw")
    record.note(frozen=False)
    record.close()
    path.write_text(path.read_text() + '{"begin":"lo')

    assert journal.read(str(path)) == {"operation": "checkpoint", "frozen": False, "steps": ["thaw"]}


def test_a_journal_that_is_not_there_is_none(tmp_path: Any) -> None:
    assert journal.read(str(tmp_path / "journal")) is None


def test_a_recovery_that_fails_keeps_the_snapshot_too(
    engine_host: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The engine dies after the commit, and the driver refuses whoever recovers too."""
    pid = engine_host.start()
    engine_host.image = engine_host.image.with_name("ctrd-checkpoint123")
    settings = Settings(checkpoint_timeout=1, restore_timeout=1, store_dir=str(tmp_path / "store"))
    killed_after(monkeypatch, "undo-seal")
    engine_host.driver_fails("unlock fail", "unlock fail")

    with pytest.raises(Internal) as caught:
        engine_host.checkpoint(leave_running=True, settings=settings)

    [note] = caught.value.__notes__
    [kept] = (path for path in (tmp_path / "store").iterdir() if path.is_dir())
    assert f"restore it from the snapshot in {kept}" in note
    snapshot.verify(str(kept))
    with pytest.raises(Internal, match=str(kept)):
        engine_host.recover()
    assert [path for path in (tmp_path / "store").iterdir() if path.is_dir()] == [kept]
    engine_host.recover()
    as_before(engine_host, pid, frozen=False)
