"""What an engine is to `diapause runtime`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from diapause.runtime.cli.runtime.edits.edit import Edit
from diapause.runtime.cli.runtime.place import Place

HANDLER = "diapause"  # the name of our runtime where an engine wants one
PROGRAM = "diapause-runc"
SHIM = "io.containerd.runc.v2"  # the stock name: only with it do all clients send checkpoint options


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What an install is to bring about."""

    program: str  # diapause-runc, absolute
    version: tuple[int, ...] = ()  # of the engine, () if it is not known
    config: str = ""  # another configuration file than the engine's usual one


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A line of `status`. `good` is None for what is neither good nor bad."""

    name: str
    value: str
    good: bool | None = None
    todo: str = ""

    def as_json(self) -> Mapping[str, object]:
        return {"name": self.name, "value": self.value, "good": self.good, "todo": self.todo}


def foreign(name: str, runtime_type: str) -> Fact:
    """Clients send the options of a checkpoint to the stock name alone. Others get none, without a word, and
    the container is left running (moby #35690).
    """
    value = (
        f"it has the type {runtime_type}, to which clients send no checkpoint options: no exit, no directory"
    )
    return Fact(name=f"runtime {name}", value=value, good=False, todo=f"make it {SHIM}")


class Engine(Protocol):
    """A module of this folder."""

    NAME: str
    DAEMON: str  # the program that reads the configuration; "" for engines without a daemon
    RESTART: str  # what brings a change into effect

    def edits(self, place: Place, request: Request) -> Sequence[Edit]:
        """The files to change."""

    def facts(self, place: Place, request: Request) -> Sequence[Fact]:
        """What is in effect and what is missing, for this engine alone."""

    def use(self) -> str:
        """How a user asks this engine for our runtime."""
