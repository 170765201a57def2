"""podman: a drop-in of containers.conf that names our runtime."""

from __future__ import annotations

from collections.abc import Sequence

from diapause.runtime.cli.runtime import toml
from diapause.runtime.cli.runtime.edits.edit import Edit
from diapause.runtime.cli.runtime.edits.own_file import OwnFile
from diapause.runtime.cli.runtime.engines.engine import HANDLER, Fact, Request
from diapause.runtime.cli.runtime.place import Place

NAME = "podman"
DAEMON = ""
RESTART = ""
DROP_IN = "/etc/containers/containers.conf.d/99-diapause.conf"
KEYS = ("engine", "runtimes")


def edits(place: Place, request: Request) -> Sequence[Edit]:
    return (OwnFile(path=request.config or DROP_IN, text=toml.table(KEYS, {HANDLER: [request.program]})),)


def facts(place: Place, request: Request) -> Sequence[Fact]:
    path = request.config or DROP_IN
    programs = toml.lookup(toml.parse(path, place.read(path)), (*KEYS, HANDLER)) or []
    value = ", ".join(map(str, programs)) or "missing"
    todo = "diapause runtime install --engine podman"
    return (Fact(name=f"runtime {HANDLER}", value=value, good=programs == [request.program], todo=todo),)


def use() -> str:
    return f"podman --runtime {HANDLER} run --device diapause.dev/gpu=0 IMAGE"
