"""A script beside the manifest that fills `$OUT`; for components that have to be built."""

from __future__ import annotations

import sys
from pathlib import Path

from diapause.runtime.components.manifest import Component
from diapause.runtime.components.tool import Tool
from diapause.runtime.errors import Internal


def make(component: Component, out: Path, downloads: Path, tool: Tool) -> None:
    """Runs in `downloads`, which survives a failure; `VERSION` and `OUT` say what is wanted.

    `RECIPES` is the manifest's folder, `PYTHON` an interpreter with pip and ziglang in a source tree.
    """
    script = component.folder / component.options["script"]
    env = {"OUT": str(out), "VERSION": component.version}
    env |= {"RECIPES": str(component.folder), "PYTHON": sys.executable}
    tool.run(["sh", "-eu", str(script)], cwd=downloads, env=env)
    for program in component.programs:
        if not (out / "bin" / program).exists():
            why = f"{script.name} made no {program}"
            raise Internal("component-failed", tool.what, why, log=str(tool.log))
