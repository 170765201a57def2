"""`diapause snapshot rm`."""

from __future__ import annotations

import click

from diapause.runtime.cli.snapshot import target
from diapause.runtime.errors import FailedPrecondition
from diapause.runtime.store import entry
from diapause.runtime.store import snapshot as snapshots


@click.command("rm")
@click.argument("names", nargs=-1, required=True, metavar="DIR|NAME...")
@click.option("--force", is_flag=True, help="Also the memory of a container that is suspended.")
def command(names: tuple[str, ...], *, force: bool) -> None:
    """Remove local snapshots, or what belongs to a snapshot in image directories."""
    local = target.store()
    for name in names:
        found = target.find(name, local)
        if found.local is not None:
            known = found.local.entry
            if known is not None and known.kind == entry.SUSPENDED and not force:
                why = f"it is the GPU memory of container {known.id}, which is suspended"
                todo = "resume the container, or remove it first; --force loses the memory"
                raise FailedPrecondition("snapshot-suspended", f"local snapshot {name}", why, todo)
            local.remove(found.local.name)
        else:
            kept, left = snapshots.remove(found.image)
            if kept:
                click.echo(f"its GPU data is still in the local store: diapause snapshot rm {kept}", err=True)
            if left:
                click.echo(f"{found.image} has other files, and stays: {', '.join(left[:5])}", err=True)
        click.echo(f"Removed {name}")
