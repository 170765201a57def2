"""`diapause snapshot embed`."""

from __future__ import annotations

import click

from diapause.runtime.cli import units
from diapause.runtime.cli.snapshot import target
from diapause.runtime.errors import InvalidArgument
from diapause.runtime.store.embed import embed
from diapause.runtime.store.snapshot import Snapshot


@click.command("embed")
@click.argument("directory", metavar="DIR")
@click.option("--rm", "remove", is_flag=True, help="Remove the local snapshot afterwards.")
def command(directory: str, *, remove: bool) -> None:
    """Copy the GPU data from the local store into an image directory.

    Every block is checked on its way. Afterwards the directory can be restored on another machine.
    """
    local = target.store()
    found = target.find(directory, local)
    if not found.image:
        raise InvalidArgument(
            "embed-no-image", f"local snapshot {directory}", "that is the GPU data alone, without its image",
            "name the image directory that refers to it",
        )  # fmt: skip
    with Snapshot.open(found.image) as snapshot:
        name = (snapshot.document.gpu_data or {}).get("name", "")
    document = embed(found.image, local)
    if remove:
        local.remove(name, missing_ok=True)
    else:
        click.echo(f"{name} is still in the local store, for other copies of the image", err=True)
    kept = document.gpu_data or {"bytes": 0, "zero": 0}
    click.echo(f"Embedded {units.size(kept['bytes'] - kept['zero'])} into {found.image}")
