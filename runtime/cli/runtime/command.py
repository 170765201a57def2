"""`diapause runtime`: tell a container engine of `diapause-runc`, look what holds, take it back."""

from __future__ import annotations

import json
import sys
from types import ModuleType
from typing import Any, cast

import click

from diapause.runtime.cli.runtime import change, node, programs
from diapause.runtime.cli.runtime import status as statuses
from diapause.runtime.cli.runtime.engines import containerd, crio, docker, nerdctl, podman
from diapause.runtime.cli.runtime.engines.engine import PROGRAM, Engine, Fact, Request
from diapause.runtime.cli.runtime.place import Place
from diapause.runtime.cli.runtime.record import Record
from diapause.runtime.errors import InvalidArgument

ENGINES: dict[str, ModuleType] = {
    module.__name__.rpartition(".")[2]: module for module in (containerd, docker, nerdctl, crio, podman)
}

_engine = click.option(
    "--engine", "name", type=click.Choice(list(ENGINES)), required=True, help="Which container engine."
)
_root = click.option(
    "--root", default="/", metavar="DIR", help="Work on the file system below DIR, for example of an image."
)
_config = click.option(
    "--config", default="", metavar="PATH",
    help="Another file than the engine's usual one; for nerdctl another directory of programs.",
)  # fmt: skip
_dry_run = click.option("--dry-run", is_flag=True, help="Show the difference and change nothing.")
_force = click.option("--force", is_flag=True, help="Replace what was edited by hand.")
_program = click.option(
    "--runtime-path", default="", metavar="PATH", help=f"Where {PROGRAM} is. Default: in this installation."
)
_version = click.option(
    "--engine-version", default="", metavar="N.N", help="Of an engine that is not installed here."
)


@click.group()
def runtime() -> None:
    """Make container engines know diapause-runc.

    Every file that is changed is shown as a difference first, and is as it was before after uninstall.
    """


@runtime.command()
@_engine
@_root
@_config
@_program
@_version
@_dry_run
@_force
def install(
    name: str, root: str, config: str, runtime_path: str, engine_version: str, *, dry_run: bool, force: bool
) -> None:
    """Write what the engine has to know. Again, it changes nothing."""
    engine = _module(name)
    place = Place(root)
    request = _request(engine, place, config, runtime_path, engine_version)
    record = Record.load(place, name)
    plan = change.to_install(place, engine.edits(place, request), record, force=force)
    _show(plan)
    if dry_run:
        click.echo(f"Would change {_files(plan)}")
        return
    change.make(place, plan, record)
    if plan.changes and engine.RESTART and place.is_host:
        click.echo(f"to bring it into effect: {engine.RESTART}", err=True)
    for fact in _wrong(list(engine.facts(place, request))):
        click.echo(f"warning: {fact.name}: {fact.value}; {fact.todo}", err=True)
    click.echo(f"use: {engine.use()}", err=True)
    click.echo(f"Changed {_files(plan)}")


@runtime.command()
@_engine
@_root
@_dry_run
@_force
def uninstall(name: str, root: str, *, dry_run: bool, force: bool) -> None:
    """Take back what install did, and nothing else."""
    engine = _module(name)
    place = Place(root)
    record = Record.load(place, name)
    plan = change.to_uninstall(place, record, force=force)
    _show(plan)
    if dry_run:
        click.echo(f"Would change {_files(plan)}")
        return
    change.make(place, plan, record)
    if plan.changes and engine.RESTART and place.is_host:
        click.echo(f"to bring it into effect: {engine.RESTART}", err=True)
    click.echo(f"Changed {_files(plan)}")


@runtime.command()
@click.option("--engine", "names", type=click.Choice(list(ENGINES)), multiple=True, help="Default: all.")
@_root
@_config
@_program
@_version
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def status(
    names: tuple[str, ...], root: str, config: str, runtime_path: str, engine_version: str, *, as_json: bool
) -> None:
    """Show what is in effect and what is missing.

    Without --engine: the node, and the engines that are installed here or were configured.
    Ends with status 1 if something is missing.
    """
    if config and len(names) != 1:
        raise InvalidArgument("engine-not-one", "runtime status", "--config is of one engine", "add --engine")
    place = Place(root)
    program = runtime_path or _own(place)
    found = [statuses.Status(name="node", facts=tuple(node.facts(program)))] if place.is_host else []
    for name in names or ENGINES:
        engine = _module(name)
        if not names and not _is_here(engine, place):
            continue
        found.append(statuses.of(engine, place, _request(engine, place, config, program, engine_version)))
    if as_json:
        data = {each.name: [fact.as_json() for fact in each.facts] for each in found}
        click.echo(json.dumps(data, indent=2))
    else:
        click.echo("\n".join(line for each in found for line in _lines(each)))
    if not all(each.good for each in found):
        sys.exit(1)


def _module(name: str) -> Engine:
    return cast(Engine, ENGINES[name])


def _request(engine: Engine, place: Place, config: str, program: str, version: str) -> Request:
    numbers = programs.parse(version)
    if version and not numbers:
        todo = "give it as 2.4 or 1.7.24"
        raise InvalidArgument("engine-version-malformed", "--engine-version", f"{version!r} is none", todo)
    if not numbers and place.is_host and (found := programs.find(engine.DAEMON or engine.NAME)):
        numbers = programs.version(found)
    return Request(program=program or _own(place), version=numbers, config=config)


def _own(place: Place) -> str:
    return programs.of_this_package(PROGRAM) if place.is_host else f"/usr/local/bin/{PROGRAM}"


def _is_here(engine: Engine, place: Place) -> bool:
    program = place.is_host and programs.find(engine.DAEMON or engine.NAME)
    return bool(program or Record.load(place, engine.NAME).notes)


def _show(plan: change.Plan) -> None:
    for each in plan.changes:
        click.echo(each.diff(), nl=False, err=True)


def _files(plan: change.Plan) -> str:
    return ", ".join(each.path for each in plan.changes) or "nothing"


def _wrong(facts: list[Fact]) -> list[Fact]:
    return [fact for fact in facts if fact.good is False]


def _lines(each: statuses.Status) -> list[str]:
    lines = [each.name]
    for fact in each.facts:
        mark: dict[Any, str] = {True: "ok", False: "NO", None: ""}
        lines.append(f"  {mark[fact.good]:<3}{fact.name:<22} {fact.value}")
        if fact.good is False and fact.todo:
            lines.append(f"     {'':<22} → {fact.todo}")
    return lines
