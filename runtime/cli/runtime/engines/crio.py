"""CRI-O: a drop-in with a runtime handler."""

from __future__ import annotations

from collections.abc import Sequence

from diapause.runtime.cli.runtime import toml
from diapause.runtime.cli.runtime.edits.edit import Edit
from diapause.runtime.cli.runtime.edits.own_file import OwnFile
from diapause.runtime.cli.runtime.engines.engine import HANDLER, Fact, Request
from diapause.runtime.cli.runtime.place import Place

NAME = "crio"
DAEMON = "crio"
RESTART = "systemctl restart crio"
DROP_IN = "/etc/crio/crio.conf.d/99-diapause.conf"
KEYS = ("crio", "runtime", "runtimes", HANDLER)


def edits(place: Place, request: Request) -> Sequence[Edit]:
    text = toml.table(("crio", "runtime"), {"enable_criu_support": True})
    text += "\n" + toml.table(KEYS, {"runtime_path": request.program, "runtime_type": "oci"})
    return (OwnFile(path=request.config or DROP_IN, text=text),)


def facts(place: Place, request: Request) -> Sequence[Fact]:
    path = request.config or DROP_IN
    program = toml.lookup(toml.parse(path, place.read(path)), (*KEYS, "runtime_path"))
    todo = "diapause runtime install --engine crio"
    good = program == request.program
    return (Fact(name=f"handler {HANDLER}", value=str(program or "missing"), good=good, todo=todo),)


def use() -> str:
    return "runtimeClassName: diapause"
