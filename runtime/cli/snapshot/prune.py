"""`diapause snapshot prune`."""

from __future__ import annotations

import json
import time

import click

from diapause.runtime.cli import units
from diapause.runtime.cli.snapshot import target
from diapause.runtime.config import size_of
from diapause.runtime.errors import Unavailable
from diapause.runtime.store import entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.store.local import Found


def _age(_: object, __: object, value: str | None) -> int | None:
    if value is None:
        return None
    if (seconds := units.seconds_of(value)) is None:
        raise click.BadParameter(f"{value!r} is no age, as 30m, 12h or 7d")
    return seconds


def _size(_: object, __: object, value: str | None) -> int | None:
    if value is None:
        return None
    if (bytes := size_of(int(value) if value.isdigit() else value)) is None:
        raise click.BadParameter(f"{value!r} is no size, as '500 GiB'")
    return bytes


@click.command("prune")
@click.option(
    "--older-than", callback=_age, metavar="AGE", help="Also what was not used for so long: 30m, 12h, 7d."
)
@click.option(
    "--to", "limit", callback=_size, metavar="SIZE",
    help="Also what was not used for longest, until the store takes no more than SIZE.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def command(*, older_than: int | None, limit: int | None, dry_run: bool, as_json: bool) -> None:
    """Remove what was cut off while it was written, and what you say is old.

    An image whose local snapshot is gone cannot be restored any more, and nobody can tell which images there
    still are. What is in use and the memory of suspended containers stays.
    """
    local = target.store()
    everything = local.all()
    rows = [
        {"path": path, "why": "cut off", "stored_bytes": _stored(path, everything), "removed": not dry_run}
        for path in (local.unfinished() if dry_run else local.sweep())
    ]
    for found, why in chosen(everything, older_than, limit, time.time()):
        removed = False
        if not dry_run:
            try:
                local.remove(found.name, missing_ok=True)
                removed = True
            except Unavailable:
                continue  # somebody has begun to use it
        rows.append({"path": found.path, "why": why, "stored_bytes": found.stored, "removed": removed})
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    total = sum(int(str(row["stored_bytes"])) for row in rows)
    for row in rows:
        verb = "would remove" if dry_run else "removed"
        click.echo(f"{verb} {row['path']} ({row['why']}, {units.size(int(str(row['stored_bytes'])))})")
    click.echo(f"{'would free' if dry_run else 'freed'} {units.size(total)}")


def chosen(
    everything: list[Found], older_than: int | None, limit: int | None, now: float
) -> list[tuple[Found, str]]:
    """What goes of what was finished, the least used first, and why."""
    finished = [f for f in everything if f.path.endswith(f"/{f.name}")]
    idle = [f for f in finished if not f.busy and not (f.entry and f.entry.kind == entry.SUSPENDED)]
    taken = sum(f.stored for f in finished)
    found = []
    for each in sorted(idle, key=lambda f: f.used):
        age = now - each.used
        if older_than is not None and age > older_than:
            found.append((each, f"unused for {units.age(age)}"))
        elif limit is not None and taken > limit:
            found.append((each, f"the store takes {units.size(taken)}"))
        else:
            continue
        taken -= each.stored
    return found


def _stored(path: str, everything: list[Found]) -> int:
    return next((found.stored for found in everything if found.path == path), 0)
