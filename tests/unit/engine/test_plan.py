"""Steps are undone in reverse, to the end, whatever fails on the way."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from diapause.runtime.engine import journal
from diapause.runtime.engine.phases import Phases
from diapause.runtime.engine.plan import Plan
from diapause.runtime.engine.watch import Watch
from diapause.runtime.errors import Internal


class Recorded:
    def __init__(self, name: str, log: list[str], *, fails: str = "") -> None:
        self.name = name
        self._log = log
        self._fails = fails

    def describe(self) -> str:
        return self.name

    def execute(self) -> None:
        self._log.append(self.name)
        if self._fails == "execute":
            raise Internal("broken", self.name, "it broke")

    def undo(self) -> None:
        self._log.append(f"undo {self.name}")
        if self._fails == "undo":
            raise RuntimeError("cannot")


@pytest.fixture
def watch() -> Iterator[Watch]:
    with Watch("test c1") as watch:
        yield watch


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal"


def plan_of(steps: list[Recorded], path: Path, watch: Watch) -> Plan:
    return Plan(steps, journal=journal.Journal(str(path)), watch=watch, phases=Phases())


def test_a_failing_step_is_undone_together_with_those_before_it(path: Path, watch: Watch) -> None:
    log: list[str] = []
    steps = [Recorded("a", log), Recorded("b", log, fails="execute"), Recorded("c", log)]

    with pytest.raises(Internal, match="it broke"):
        plan_of(steps, path, watch).run()

    assert log == ["a", "b", "undo b", "undo a"]
    assert not path.exists()


def test_an_undo_that_fails_is_noted_and_the_others_still_run(path: Path, watch: Watch) -> None:
    log: list[str] = []
    steps = [Recorded("a", log), Recorded("b", log, fails="undo"), Recorded("c", log, fails="execute")]

    with pytest.raises(Internal) as caught:
        plan_of(steps, path, watch).run()

    assert log[-3:] == ["undo c", "undo b", "undo a"]
    assert caught.value.__notes__ == ["undoing b: cannot"]
    assert path.exists()  # somebody has to try again


def test_every_step_is_journaled_before_it_begins(path: Path, watch: Watch) -> None:
    seen: list[object] = []

    class Looks(Recorded):
        def execute(self) -> None:
            facts = journal.read(str(path))
            seen.append(facts and facts["steps"])

    plan_of([Looks("a", []), Looks("b", [])], path, watch).run()

    assert seen == [["a"], ["a", "b"]]


def test_a_finished_plan_can_be_unwound(path: Path, watch: Watch) -> None:
    log: list[str] = []
    plan = plan_of([Recorded("a", log), Recorded("b", log)], path, watch)
    plan.run()

    assert plan.unwind() == []

    assert log == ["a", "b", "undo b", "undo a"]
    assert not path.exists()


def test_no_step_begins_after_a_cancellation(path: Path, watch: Watch) -> None:
    log: list[str] = []

    class Interrupted(Recorded):
        def execute(self) -> None:
            super().execute()
            watch.cancelled = "interrupted by SIGTERM"

    with pytest.raises(Internal, match="interrupted by SIGTERM"):
        plan_of([Interrupted("a", log), Recorded("b", log)], path, watch).run()

    assert log == ["a", "undo a"]


def test_phases_have_the_time_of_each_step(path: Path, watch: Watch) -> None:
    phases = Phases()
    Plan([Recorded("a", [])], journal=journal.Journal(str(path)), watch=watch, phases=phases).run()
    phases.tell("a", text="do a", size=7)

    assert [(entry["name"], entry["bytes"]) for entry in phases.entries()] == [("a", 7)]
    assert phases.texts() == ["do a"]
    assert os.path.exists(path)
