"""What every engine needs of this node: the low-level runtime, CRIU, a configuration, a GPU to ask for."""

from __future__ import annotations

import os
from collections.abc import Iterator

from diapause.runtime import config as configuration
from diapause.runtime.cli.runtime import programs
from diapause.runtime.cli.runtime.engines.engine import Fact
from diapause.runtime.config import Config
from diapause.runtime.errors import DiapauseError, InvalidArgument
from diapause.runtime.oci.cdi import nvidia, specs

RUNC = (1, 1)
CRIU = (4, 2)


def facts(program: str) -> list[Fact]:
    good = os.access(program, os.X_OK)
    found = [Fact(name="program", value=program, good=good, todo="install the package diapause")]
    try:
        config = configuration.load()
    except DiapauseError as e:
        return [*found, Fact(name="configuration", value=e.why, good=False, todo=e.todo)]
    return [*found, _runc(config), _criu(config), *_cdi(config)]


def _runc(config: Config) -> Fact:
    path = programs.find(config.runtime_runc or "runc")
    todo = "install runc, or name the low-level runtime in [runtime] runc"
    return _program("low-level runtime", path, RUNC, todo)


def _criu(config: Config) -> Fact:
    named = config.criu_path
    path = os.path.join(named, "criu") if named and os.path.isdir(named) else named or programs.find("criu")
    todo = "`diapause components get criu` gets one; name it in [criu] path"
    return _program("CRIU", path, CRIU, todo)


def _program(name: str, path: str, least: tuple[int, ...], todo: str) -> Fact:
    if not path or not os.access(path, os.X_OK):
        return Fact(name=name, value=f"{path} cannot be run" if path else "missing", good=False, todo=todo)
    version = programs.version(path)
    value = f"{path}, {programs.shown(version) or 'of unknown version'}"
    wanted = f"needed is {programs.shown(least)} or later; {todo}"
    return Fact(name=name, value=value, good=version >= least if version else None, todo=wanted)


def _cdi(config: Config) -> Iterator[Fact]:
    broken: list[InvalidArgument] = []
    kinds = {data["kind"] for _, data in specs.read_all(config.cdi_spec_dirs, broken)}
    kinds &= {specs.NVIDIA, specs.SOFTWARE}
    for error in broken:
        yield Fact(name="GPUs", value=f"{error.what}: {error.why}", good=False, todo=error.todo)
    gpu = nvidia.has_gpu()
    value = ", ".join(sorted(kinds)) or f"no CDI specification in {', '.join(config.cdi_spec_dirs)}"
    if kinds == {specs.SOFTWARE}:
        value += " (the software GPU: it computes on the CPU)"
    good = specs.NVIDIA in kinds if gpu else bool(kinds)
    yield Fact(
        name="GPUs", value=value, good=good, todo="diapause cdi generate --output /etc/cdi/diapause.json"
    )
