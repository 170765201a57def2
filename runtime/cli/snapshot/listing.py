"""`diapause snapshot list`."""

from __future__ import annotations

import json
import os
import time

import click

from diapause.runtime.cli import table, units
from diapause.runtime.cli.snapshot import target
from diapause.runtime.errors import DiapauseError
from diapause.runtime.store import entry, layout
from diapause.runtime.store.snapshot import Snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from diapause.runtime.store.local import Found

_HEADER = ("NAME", "CONTAINER", "GPU MEMORY", "STORED", "WHERE", "CREATED", "USED", "STATE")


@click.command("list")
@click.argument("directories", nargs=-1, metavar="[DIR]...", type=click.Path(exists=True, file_okay=False))
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def command(directories: tuple[str, ...], *, as_json: bool) -> None:
    """List the local store of this machine, and the image directories in each DIR."""
    local = target.store()
    if why := local.memory_fault():
        click.echo(f"the store does not use its memory-dir: {why}", err=True)
    rows = [of_local(found) for found in local.all()]
    for directory in directories:
        rows += [of_image(path) for path in images(directory)]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    if not rows:
        click.echo("no snapshots: the local store is empty", err=True)
        return
    cells = [_cells(row) for row in rows]
    click.echo("\n".join(table.lines(_HEADER, cells, right=(2, 3))))


def of_local(found: Found) -> dict[str, Any]:
    """A row; sizes in bytes."""
    known = found.entry
    return {
        "name": found.name,
        "path": found.path,
        "kind": known.kind if known else "",
        "where": found.tier,
        "container": known.id if known else "",
        "gpu_bytes": known.bytes if known else 0,
        "stored_bytes": found.stored,
        "created": known.created if known else "",
        "used": units.moment(found.used),
        "busy": found.busy,
        "fault": found.fault,
        "image": known.image if known else "",
        "note": known.note if known else "",
    }


def images(directory: str) -> list[str]:
    """The directory itself and those in it that have a manifest."""
    found = [directory, *(f"{directory}/{name}" for name in sorted(os.listdir(directory)))]
    return [os.path.abspath(path) for path in found if os.path.lexists(f"{path}/{layout.MANIFEST}")]


def of_image(path: str) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": path, "path": path, "kind": "image", "where": "directory", "container": "", "gpu_bytes": 0,
        "stored_bytes": 0, "created": "", "used": "", "busy": False, "fault": "", "image": path, "note": "",
    }  # fmt: skip
    try:
        with Snapshot.open(path) as snapshot:
            document = snapshot.document
    except DiapauseError as error:
        return {**row, "fault": error.why}
    data = document.gpu_data
    return {
        **row,
        "container": document.raw["id"],
        "created": document.raw["created"],
        "gpu_bytes": data["bytes"] if data else 0,
        "stored_bytes": document.size,
        "note": f"GPU data in the local store as {data['name']}" if data and data["name"] else "",
    }


def _cells(row: dict[str, Any]) -> list[str]:
    used = f"{units.age(time.time() - _seconds(row['used']))} ago" if row["used"] else "-"
    ready = "of a suspended container" if row["kind"] == entry.SUSPENDED else "ready"
    state = row["fault"] or ("in use" if row["busy"] else row["note"] or ready)
    return [
        table.plain(row["name"]), table.plain(row["container"]) or "-",
        units.size(row["gpu_bytes"]) if row["gpu_bytes"] else "-", units.size(row["stored_bytes"]),
        row["where"], table.plain(row["created"]) or "-", used, table.plain(state),
    ]  # fmt: skip


def _seconds(moment: str) -> float:
    import calendar

    return calendar.timegm(time.strptime(moment, "%Y-%m-%dT%H:%M:%SZ"))
