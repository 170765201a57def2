"""`diapause snapshot verify`."""

from __future__ import annotations

import json
import sys
import time

import click

from diapause.runtime.cli import table, units
from diapause.runtime.cli.snapshot import check, target
from diapause.runtime.errors import DiapauseError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from diapause.runtime.store.local import Local

_WORST = (check.DAMAGED, check.ELSEWHERE, check.FAILED, check.SOUND)


@click.command("verify")
@click.argument("names", nargs=-1, required=True, metavar="DIR|NAME...")
@click.option("--quick", is_flag=True, help="Only what can be told without reading the data.")
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def command(names: tuple[str, ...], *, quick: bool, as_json: bool) -> None:
    """Read snapshots and compare them with their manifest and index.

    Ends with 0 if all are sound, 3 if one is damaged, 4 if GPU data is in the store of another machine,
    1 if one could not be checked.
    """
    local = target.store()
    results = [_verify(name, local, quick=quick, as_json=as_json) for name in names]
    if as_json:
        click.echo(json.dumps(results, indent=2))
    statuses = {int(result["exit_code"]) for result in results}
    sys.exit(next(status for status in _WORST if status in statuses))


def _verify(name: str, local: Local, *, quick: bool, as_json: bool) -> dict[str, Any]:
    started = time.monotonic()
    with _Progress(name) as progress:
        try:
            found = list(
                check.faults(target.find(name, local), local, contents=not quick, progress=progress.show)
            )
        except DiapauseError as error:
            text = f"{error.why}; {error.todo}"
            found = [check.Fault(status=check.FAILED, code=error.code, file="", text=text)]
        except OSError as error:
            text = f"{error.filename or ''}: {(error.strerror or str(error)).lower()}".lstrip(": ")
            found = [check.Fault(status=check.FAILED, code="os-error", file="", text=text)]
    statuses = {fault.status for fault in found} or {check.SOUND}
    status = next(each for each in _WORST if each in statuses)
    ms = (time.monotonic() - started) * 1000
    if not as_json:
        how = "names and sizes" if quick else "everything"
        click.echo(f"{table.plain(name)}: {check.WORDS[status]} ({how}, {units.duration(ms)})")
        for fault in found:
            file = f"{fault.file}: " if fault.file and fault.file not in fault.text else ""
            click.echo(f"  {file}{table.plain(fault.text)} [{fault.code}]")
    return {
        "snapshot": name,
        "state": check.WORDS[status],
        "exit_code": status,
        "quick": quick,
        "ms": round(ms, 1),
        "faults": [
            {"code": f.code, "file": f.file, "allocation": f.allocation, "text": f.text} for f in found
        ],
    }


class _Progress:
    """A line on stderr that is written over and goes at the end; nothing unless that is a terminal."""

    def __init__(self, name: str) -> None:
        self._name = table.plain(name)
        self._shown = sys.stderr.isatty()

    def show(self, bytes: int) -> None:
        if self._shown:
            click.echo(f"\r{self._name}: {units.size(bytes)} of GPU data \x1b[K", nl=False, err=True)

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            click.echo("\r\x1b[K", nl=False, err=True)
