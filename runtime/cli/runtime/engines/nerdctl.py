"""nerdctl looks a runtime up in its own PATH, so the program has to lie where everybody's PATH leads."""

from __future__ import annotations

import os
from collections.abc import Sequence

from diapause.runtime.cli.runtime.edits.edit import Edit
from diapause.runtime.cli.runtime.edits.own_file import OwnFile
from diapause.runtime.cli.runtime.engines.engine import PROGRAM, Fact, Request
from diapause.runtime.cli.runtime.place import LINK, Place

NAME = "nerdctl"
DAEMON = ""
RESTART = ""
DIRECTORY = "/usr/local/bin"
FOLDERS = ("/usr/local/sbin", DIRECTORY, "/usr/sbin", "/usr/bin", "/sbin", "/bin")  # of root's PATH anywhere


def edits(place: Place, request: Request) -> Sequence[Edit]:
    """A link; the program finds what belongs to it by its own real path."""
    if os.path.dirname(request.program) in FOLDERS:
        return ()
    return (OwnFile(path=f"{request.config or DIRECTORY}/{PROGRAM}", text=f"{LINK}{request.program}"),)


def facts(place: Place, request: Request) -> Sequence[Fact]:
    folders = (request.config,) if request.config else FOLDERS
    found = next((path for folder in folders if place.exists(path := f"{folder}/{PROGRAM}")), "")
    leads = (place.read_link(found) or "").removeprefix(LINK) if found else ""
    value = f"{found} → {leads}" if os.path.isabs(leads) else found or "missing"
    good = request.program in (found, leads)
    todo = "diapause runtime install --engine nerdctl"
    return (Fact(name=f"{PROGRAM} in PATH", value=value, good=good, todo=todo),)


def use() -> str:
    return f"nerdctl run --runtime {PROGRAM} --gpus all IMAGE"
