"""`diapause components`: containerd, runc and CRIU for a machine that lacks them."""

from __future__ import annotations

from pathlib import Path

import click

from diapause.runtime.components.cache import Cache
from diapause.runtime.components.get import get
from diapause.runtime.components.manifest import Component, load, pick
from diapause.runtime.errors import NotFound

_manifest = click.option(
    "--manifest", "manifests", multiple=True, type=click.Path(path_type=Path), metavar="FILE",
    help="A TOML file with more components.",
)  # fmt: skip


@click.group()
def components() -> None:
    """Get real containerd, runc and CRIU without installing them.

    Components are downloaded or built once for each version into $DIAPAUSE_CACHE (default:
    ~/.cache/diapause). Nothing on the system is changed and nothing is started.
    """


@components.command("get")
@click.argument("names", nargs=-1, required=True)
@_manifest
def get_command(names: tuple[str, ...], manifests: tuple[Path, ...]) -> None:
    """Make sure that components are there; print the folder of each, one a line."""
    folders = get(load(*manifests), names, Cache.of_user(), lambda text: click.echo(text, err=True))
    for name in names:
        click.echo(folders[name])


@components.command("list")
@_manifest
def list_command(manifests: tuple[Path, ...]) -> None:
    """Show every component of the manifest, and whether it is there."""
    cache = Cache.of_user()
    for component in load(*manifests).values():
        state = "here" if cache.find(component) else "-"
        click.echo(f"{component.name:<16} {component.version:<10} {state:<5} {component.about}")


@components.command("path")
@click.argument("name")
@_manifest
def path_command(name: str, manifests: tuple[Path, ...]) -> None:
    """Print the folder of a component that is there already."""
    click.echo(_find(pick(load(*manifests), name)))


def _find(component: Component) -> Path:
    found = Cache.of_user().find(component)
    if found is None:
        raise NotFound(
            "component-missing", f"component {component.name}", "it is not here yet",
            f"run diapause components get {component.name}",
        )  # fmt: skip
    return found
