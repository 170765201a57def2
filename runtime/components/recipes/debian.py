"""Packages of the running Debian, unpacked beside each other; nothing is installed or started."""

from __future__ import annotations

import os
from pathlib import Path

from diapause.runtime.components import apt
from diapause.runtime.components.manifest import Component
from diapause.runtime.components.tool import Tool
from diapause.runtime.errors import Internal

_PLACES = ("usr/bin", "usr/sbin", "bin", "sbin")


def make(component: Component, out: Path, downloads: Path, tool: Tool) -> None:
    apt.require_debian(tool.what)
    apt.unpack(tool, apt.download(tool, component.options["packages"], downloads), out / "root")
    (out / "bin").mkdir()
    for program in component.programs:
        (out / "bin" / program).symlink_to(os.path.join("..", find(out, program, tool)))


def find(out: Path, program: str, tool: Tool) -> str:
    """The path of an unpacked program relative to `out`."""
    for place in _PLACES:
        if (out / "root" / place / program).is_file():
            return os.path.join("root", place, program)
    raise Internal("component-failed", tool.what, f"the packages hold no {program}", log=str(tool.log))
