"""`diapause snapshot show`."""

from __future__ import annotations

import json
import shutil

import click

from diapause.runtime.cli import table, units
from diapause.runtime.cli.snapshot import target, timeline, view

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

_SHOWN = 20  # allocations, unless --all
_WAYS = {  # in the order in which they are shown
    "gpu_copied": "GPU memory, copied",
    "gpu_zero": "GPU memory, zeros (kept nowhere)",
    "gpu_by_driver": "GPU memory, saved by the driver (in the memory of the processes)",
    "criu_memory": "memory of the processes, by CRIU",
    "other_files": "everything else",
}


@click.command("show")
@click.argument("name", metavar="DIR|NAME")
@click.option("--all", "everything", is_flag=True, help=f"Every allocation, not only the {_SHOWN} largest.")
@click.option("--json", "as_json", is_flag=True, help="Everything as JSON.")
def command(name: str, *, everything: bool, as_json: bool) -> None:
    """Show the processes, the allocations, the bytes and the phases of a snapshot."""
    local = target.store()
    found = view.of(target.find(name, local), local)
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    width = shutil.get_terminal_size((100, 24)).columns
    click.echo("\n".join(text(found, width, everything=everything)))


def text(found: dict[str, Any], width: int, *, everything: bool) -> Iterator[str]:
    """The page, line by line."""
    yield f"snapshot {table.plain(found['path'])}"
    facts = [fact for fact in _facts(found) if fact[1]]
    room = max(len(name) for name, _ in facts)
    yield from (f"  {name.ljust(room)}  {table.plain(value)}" for name, value in facts)
    yield from _section("processes", _processes(found["processes"]))
    yield from _section("allocations", _allocations(found["allocations"], everything=everything))
    yield from _section("bytes", _ways(found["bytes"]))
    if found["phases"]:
        yield from _section("phases", timeline.lines(found["phases"], width - 2))


def _section(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield ""
        yield title
        yield from (f"  {line}" for line in lines)


def _facts(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "container", found["container"]
    yield "created", found["created"]
    if "engine" in found:
        software = ", the software GPU" if found["software_gpu"] else ""
        yield "engine", f"{found['engine']}, evacuated by {found['evacuated']}{software}"
        yield "driver", (found["driver"] or {}).get("version", "")
        yield "tools", ", ".join(f"{name} {value}" for name, value in found["tools"].items())
        yield "flags", ", ".join(found["flags"])
    yield "GPU data", _placement(found["gpu_data"])
    yield "image", found.get("image", "")
    yield "note", found.get("note", "")


def _placement(data: dict[str, Any] | None) -> str:
    if data is None:
        return "none beside the memory of the processes"
    sums = f"{units.size(data['bytes'])} in {data['allocations']} allocations"
    if data["placement"] == "embedded":
        return f"{sums}, in this directory"
    missing = "" if data["here"] else f"; NOT HERE, it was put into the store of {data['host']}"
    return f"{sums}, in the local store as {data['name']}{missing}"


def _processes(processes: list[dict[str, Any]]) -> list[str]:
    rows = [
        [
            str(process["pid"]), table.plain(process["comm"]) or "-", "yes" if process["gpu"] else "-",
            str(process["allocations"] or "-"),
            units.size(process["gpu_bytes"]) if process["gpu_bytes"] else "-",
            "stopped" if process["stopped"] else "",
        ]
        for process in processes
    ]  # fmt: skip
    header = ("PID", "COMMAND", "GPU", "ALLOCATIONS", "GPU MEMORY", "")
    return table.lines(header, rows, right=(0, 3, 4)) if rows else []


def _allocations(allocations: list[dict[str, Any]], *, everything: bool) -> list[str]:
    if not allocations:
        return []
    shown = allocations
    if not everything and len(allocations) > _SHOWN:
        shown = sorted(allocations, key=lambda each: -int(each["size_bytes"]))[:_SHOWN]
    rows = [
        [
            str(each["process"]), str(each["id"]),
            f"0x{each['address']:x}" if each["address"] else "-", units.size(each["size_bytes"]),
            units.size(each["kept_bytes"]), each["device"][:8], " ".join(each["kinds"]),
        ]
        for each in shown
    ]  # fmt: skip
    header = ("PID", "ID", "ADDRESS", "SIZE", "KEPT", "GPU", "")
    lines = table.lines(header, rows, right=(0, 1, 3, 4))
    if rest := allocations[len(shown) :]:
        lines.append(f"and {len(rest)} smaller ones (--all)")
    return lines


def _ways(ways: dict[str, int]) -> list[str]:
    rows = [[text, units.size(ways[name])] for name, text in _WAYS.items() if ways.get(name)]
    if "all_files" in ways:
        rows.append(["files of the image directory", units.size(ways["all_files"])])
    return table.lines(("", ""), rows, right=(1,))[1:] if rows else []
