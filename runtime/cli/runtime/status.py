"""What is in effect for an engine and what is missing."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

from diapause.runtime.cli.runtime import programs
from diapause.runtime.cli.runtime.engines.engine import Engine, Fact, Request
from diapause.runtime.cli.runtime.place import Place
from diapause.runtime.cli.runtime.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    name: str
    facts: tuple[Fact, ...]

    @property
    def good(self) -> bool:
        return all(fact.good is not False for fact in self.facts)


def of(engine: Engine, place: Place, request: Request) -> Status:
    record = Record.load(place, engine.NAME)
    files = ", ".join(sorted(record.notes)) or "nothing by this command"
    facts = [*_program(engine, place, request), *engine.facts(place, request)]
    facts.append(Fact(name="installed", value=files))
    if place.is_host:
        facts += _in_effect(engine, record)
    return Status(name=engine.NAME, facts=tuple(facts))


def _program(engine: Engine, place: Place, request: Request) -> Iterator[Fact]:
    if not place.is_host:
        return
    path = programs.find(engine.DAEMON or engine.NAME)
    value = (
        f"{path}, {programs.shown(request.version) or 'of unknown version'}" if path else "not installed here"
    )
    yield Fact(name=engine.DAEMON or engine.NAME, value=value)


def _in_effect(engine: Engine, record: Record) -> Iterator[Fact]:
    """A daemon that started before its configuration was changed does not know of it."""
    changed = max((os.stat(path).st_mtime for path in record.notes if os.path.isfile(path)), default=0.0)
    if not engine.DAEMON or not changed:
        return
    running = programs.daemons(engine.DAEMON)
    if not running:
        yield Fact(name="in effect", value=f"no {engine.DAEMON} is running")
    for pid, started in running:
        good = started >= changed
        when = time.strftime("%H:%M:%S", time.localtime(started))
        value = f"{engine.DAEMON} {pid} runs since {when}, {'after' if good else 'before'} the change"
        yield Fact(name="in effect", value=value, good=good, todo=engine.RESTART)
