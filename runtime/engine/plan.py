"""Side effects as a list of steps: done in order, undone in reverse."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    from diapause.runtime.engine.journal import Journal
    from diapause.runtime.engine.phases import Phases
    from diapause.runtime.engine.watch import Watch

    class Step(Protocol):
        """A step's undo() has to cope with an execute() that failed anywhere, and with being repeated."""

        name: str

        def describe(self) -> str:
            """What it does, for logs."""

        def execute(self) -> None: ...

        def undo(self) -> None: ...


class Plan:
    """Runs steps, each journaled before it begins."""

    def __init__(self, steps: Sequence[Step], *, journal: Journal, watch: Watch, phases: Phases) -> None:
        self._steps = steps
        self._journal = journal
        self._watch = watch
        self._phases = phases
        self._begun: list[Step] = []

    def run(self) -> None:
        """Execute every step. When one fails, undo all that began and raise its error.

        What could not be undone is noted on the error, and the journal stays for a later attempt.
        """
        try:
            for step in self._steps:
                self._watch.check()
                self._journal.begin(step.name)
                self._begun.append(step)
                self._timed(step.name, step.execute)
                self._phases.tell(step.name, text=step.describe(), size=getattr(step, "bytes", 0))
        except BaseException as error:
            for failure in self.unwind():
                error.add_note(failure)
            raise

    def unwind(self) -> list[str]:
        """Undo what was done, in reverse, to its end; returns what failed on the way, in words."""
        self._watch.shielded = True
        failures = []
        while self._begun:
            step = self._begun.pop()
            try:
                self._timed(f"undo-{step.name}", step.undo)
            except Exception as error:
                failures.append(f"undoing {step.name}: {error}")
        if not failures:
            self._journal.remove()
        self._watch.shielded = False
        return failures

    def _timed(self, name: str, call: Callable[[], None]) -> None:
        start = time.monotonic()
        try:
            call()
        finally:
            self._phases.add(name, time.monotonic() - start)
