"""Docker: daemon.json names our runtime, and switches on what its checkpoints need.

`docker checkpoint` exists in experimental mode alone; CDI devices are behind a switch in 25 to 27.
"""

from __future__ import annotations

from collections.abc import Sequence

from diapause.runtime.cli.runtime.edits import keys
from diapause.runtime.cli.runtime.edits.edit import Edit
from diapause.runtime.cli.runtime.engines.engine import HANDLER, PROGRAM, SHIM, Fact, Request, foreign
from diapause.runtime.cli.runtime.place import Place

NAME = "docker"
DAEMON = "dockerd"
RESTART = "systemctl restart docker"
CONFIG = "/etc/docker/daemon.json"
PATH = ("runtimes", HANDLER, "path")
EXPERIMENTAL = ("experimental",)
CDI = ("features", "cdi")


def edits(place: Place, request: Request) -> Sequence[Edit]:
    values = ((PATH, request.program), (EXPERIMENTAL, True), (CDI, True))
    return (keys.Keys(path=request.config or CONFIG, values=values, own=(PATH,)),)


def facts(place: Place, request: Request) -> Sequence[Fact]:
    path = request.config or CONFIG
    data = keys.parse(path, place.read(path))
    runtime = keys.get(data, PATH)
    found = [
        Fact(name="configuration", value=path if place.exists(path) else f"{path} (not there)"),
        Fact(
            name=f"runtime {HANDLER}", value=str(runtime[0]) if runtime else "missing",
            good=runtime == [request.program], todo="diapause runtime install --engine docker",
        ),
        _switch("experimental", keys.get(data, EXPERIMENTAL), "`docker checkpoint` needs it"),
        _switch("features.cdi", keys.get(data, CDI), "CDI devices need it in Docker 25 to 27"),
    ]  # fmt: skip
    for name, entry in (data.get("runtimes") or {}).items():
        kind = entry.get("runtimeType") if isinstance(entry, dict) else None
        if kind not in (None, SHIM) and PROGRAM in str(entry.get("options")):
            found.append(foreign(name, kind))
    if keys.get(data, ("features", "containerd-snapshotter")) == [True]:
        why = "the containerd image store: not tried with checkpoints"
        found.append(Fact(name="containerd-snapshotter", value=why))
    if request.version[:1] >= (28,):
        value = (
            "`docker start --checkpoint` fails with containerd's own shim from Docker 28 on, with any runtime"
        )
        todo = "restore with `ctr` or `nerdctl`, or use Docker 27 or older"
        found.append(Fact(name="start --checkpoint", value=value, good=False, todo=todo))
    return found


def _switch(name: str, value: Sequence[object], todo: str) -> Fact:
    return Fact(name=name, value="on" if value == [True] else "off", good=value == [True], todo=todo)


def use() -> str:
    return f"docker run --runtime {HANDLER} --gpus all IMAGE"
