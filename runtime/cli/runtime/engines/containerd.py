"""containerd: a runtime handler for CRI, which Kubernetes names in a RuntimeClass.

`ctr` and nerdctl need no entry: they name the program. A drop-in is used where containerd unites it with the
main file, which is from 2.0 on. Before, an imported file replaces the whole table of a plugin (seen with
1.6.20: the imported handler was the only one left, and the pause image the default), so the handler is
appended to config.toml there, as it is where config.toml imports no drop-ins. And 1.x has a handler for runc
by itself only as long as the file names no other: then it needs an entry too.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Mapping, Sequence
from typing import Any

from diapause.runtime.cli.runtime import toml
from diapause.runtime.cli.runtime.edits.block import Block, without
from diapause.runtime.cli.runtime.edits.edit import Edit
from diapause.runtime.cli.runtime.edits.own_file import OwnFile
from diapause.runtime.cli.runtime.engines.engine import HANDLER, PROGRAM, SHIM, Fact, Request, foreign
from diapause.runtime.cli.runtime.place import Place
from diapause.runtime.errors import FailedPrecondition

NAME = "containerd"
DAEMON = "containerd"
RESTART = "systemctl restart containerd"
CONFIG = "/etc/containerd/config.toml"
DROP_IN = "/etc/containerd/conf.d/99-diapause.toml"
PLUGIN = {2: "io.containerd.grpc.v1.cri", 3: "io.containerd.cri.v1.runtime"}
PASSED_ON = "diapause.dev/*"
NOT_COPIED = ("runtime_path", "runtime_engine", "runtime_root", "BinaryName", "options")


def edits(place: Place, request: Request) -> Sequence[Edit]:
    path = request.config or CONFIG
    text = without(place.read(path))
    data = toml.parse(path, text)
    version = _version(path, text, data, request)
    keys = _keys(version)
    values = _handler(toml.lookup(_all(place, path, data), (*keys[:-1], "runc")) or {}, request.program)
    table = toml.table(keys, values)
    if _unites_drop_ins(data, version, request) and _imports(path, data, DROP_IN):
        return (OwnFile(path=DROP_IN, text=f"version = {min(version, 3)}\n\n{table}"),)
    tables = [keys]
    if version == 2 and not toml.lookup(_all(place, path, data), keys[:-1]):
        table += toml.table((*keys[:-1], "runc"), {"runtime_type": SHIM})
        tables.append((*keys[:-1], "runc"))
    return (Block(path=path, tables=tuple(tables), head=f"version = {version}\n\n", text=table),)


def facts(place: Place, request: Request) -> Sequence[Fact]:
    path = request.config or CONFIG
    text = place.read(path)
    data = toml.parse(path, text)
    version = _version(path, text, data, request)
    everything = _all(place, path, data)
    program = next(
        (
            found
            for known in PLUGIN
            if (found := toml.lookup(everything, (*_keys(known), "options", "BinaryName")))
        ),
        "",
    )
    found = [
        Fact(
            name="configuration",
            value=f"{path} (not there)" if text is None else f"{path}, version {version}",
        ),
        Fact(
            name=f"handler {HANDLER}", value=program or "missing", good=program == request.program,
            todo="diapause runtime install --engine containerd; ctr and nerdctl work without",
        ),
    ]  # fmt: skip
    for known in PLUGIN:
        for name, handler in (toml.lookup(everything, _keys(known)[:-1]) or {}).items():
            binary = os.path.basename(str(toml.lookup(handler, ("options", "BinaryName"))))
            if binary == PROGRAM and (other := handler.get("runtime_type", SHIM)) != SHIM:
                found.append(foreign(name, other))
    disabled = set(data.get("disabled_plugins") or [])
    if off := disabled & {"cri", *(f"{plugin}" for plugin in PLUGIN.values())}:
        todo = "take it out for Kubernetes; ctr, nerdctl and docker work without"
        found.append(
            Fact(name="CRI", value=f"off: disabled_plugins has {sorted(off)[0]}", good=False, todo=todo)
        )
    if request.version[:1] == (1,) and toml.lookup(data, ("plugins", PLUGIN[2], "enable_cdi")) is not True:
        todo = "enable_cdi = true (1.7), or the annotations diapause.dev/gpu-enabled and diapause.dev/gpus"
        found.append(Fact(name="CDI in CRI", value="off", todo=todo))
    return found


def use() -> str:
    return (
        "ctr run --runc-binary diapause-runc --device diapause.dev/gpu=0 IMAGE ID; runtimeClassName: diapause"
    )


def _version(path: str, text: str | None, data: Mapping[str, Any], request: Request) -> int:
    """Of the configuration. Without a file: one that this containerd reads, 2 is read by all."""
    if text is None or not data:
        return 3 if request.version[:1] >= (2,) else 2
    version = data.get("version", 1)
    if not isinstance(version, int) or version < 2:
        todo = "`containerd config migrate` prints it in version 2"
        raise FailedPrecondition("engine-config-old", path, "it is of version 1", todo)
    return version


def _keys(version: int) -> tuple[str, ...]:
    return ("plugins", PLUGIN[min(version, 3)], "containerd", "runtimes", HANDLER)


def _unites_drop_ins(data: Mapping[str, Any], version: int, request: Request) -> bool:
    return bool(data) and (version >= 3 or request.version[:1] >= (2,))


def _imports(path: str, data: Mapping[str, Any], file: str) -> bool:
    imports = [os.path.join(os.path.dirname(path), str(entry)) for entry in data.get("imports") or []]
    return any(fnmatch.fnmatch(file, entry) for entry in imports)


def _all(place: Place, path: str, data: dict[str, Any]) -> Any:
    """With what the main file imports, as far as the imports can be read."""
    found: Any = data
    for entry in data.get("imports") or []:
        pattern = os.path.join(os.path.dirname(path), str(entry))
        directory = os.path.dirname(pattern)
        try:
            names = sorted(os.listdir(place.outside(directory)))
        except OSError:
            continue
        for name in fnmatch.filter(names, os.path.basename(pattern)):
            file = f"{directory}/{name}"
            found = toml.merged(found, toml.parse(file, place.read(file)))
    return found


def _handler(runc: Mapping[str, Any], program: str) -> dict[str, Any]:
    """runc's handler with another program: pods of ours get the cgroups and the limits of all others."""
    values = {
        key: value for key, value in runc.items() if key not in NOT_COPIED and not isinstance(value, dict)
    }
    values["runtime_type"] = SHIM
    for key in ("pod_annotations", "container_annotations"):
        values[key] = [*(entry for entry in values.get(key) or [] if entry != PASSED_ON), PASSED_ON]
    options = {key: value for key, value in (runc.get("options") or {}).items() if key not in NOT_COPIED}
    return {**values, "options": {**options, "BinaryName": program}}
