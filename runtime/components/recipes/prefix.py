"""A program of another Debian release with all its libraries and the loader that fits them.

The folder can be moved: each program is a small script that finds its own place and starts the loader.
"""

from __future__ import annotations

import platform
import re
import shutil
import tempfile
from pathlib import Path

from diapause.runtime.components import apt
from diapause.runtime.components.manifest import Component
from diapause.runtime.components.recipes.debian import find
from diapause.runtime.components.tool import Tool
from diapause.runtime.errors import Internal

_LOADERS = {"x86_64": "ld-linux-x86-64.so.2", "aarch64": "ld-linux-aarch64.so.1"}
_WRAPPER = """\
#!/bin/sh
here=$0
[ ! -L "$here" ] || here=$(readlink -f "$here")
here=${{here%/bin/*}}
exec "$here/lib/{loader}" --library-path "$here/lib" "$here/libexec/{program}" "$@"
"""


def make(component: Component, out: Path, downloads: Path, tool: Tool) -> None:
    debs = apt.download_closure(tool, component.options["suite"], component.options["packages"], downloads)
    loader = _LOADERS[platform.machine()]
    for name in ("bin", "lib", "libexec"):
        (out / name).mkdir()
    with tempfile.TemporaryDirectory(dir=out) as scratch:
        apt.unpack(tool, debs, Path(scratch, "root"))
        libraries = Path(scratch, "root/usr/lib", f"{platform.machine()}-linux-gnu")
        shutil.copy2(libraries / loader, out / "lib")
        for program in component.programs:
            source = Path(scratch, find(Path(scratch), program, tool))
            shutil.copy2(source, out / "libexec")
            for library in needed(libraries / loader, libraries, source, tool):
                shutil.copy2(library, out / "lib")
            wrapper = out / "bin" / program
            wrapper.write_text(_WRAPPER.format(loader=loader, program=program))
            wrapper.chmod(0o755)
    for program in component.programs:
        check_version(component, out / "bin" / program, tool)


def needed(loader: Path, libraries: Path, program: Path, tool: Tool) -> list[Path]:
    """What the loader maps for a program. Raises Internal if the packages lack one of them."""
    listed = tool.run([str(loader), "--library-path", str(libraries), "--list", str(program)], quiet=True)
    if missing := re.findall(r"(\S+) => not found", listed):
        raise Internal("component-failed", tool.what, f"the packages hold no {missing[0]}", log=str(tool.log))
    found = [Path(path) for path in re.findall(r"=> (/\S+)", listed)]
    return [path for path in found if path.is_relative_to(libraries)]


def check_version(component: Component, program: Path, tool: Tool) -> None:
    """The archive moves on; what it has now must be at least what the manifest asks for."""
    text = tool.run([str(program), "--version"], quiet=True)
    version = re.search(r"\d+(?:\.\d+)+", text)
    if version is None or _numbers(version[0]) < _numbers(component.version):
        why = f"{program.name} says {text.strip()!r}, wanted is {component.version}"
        raise Internal("component-failed", tool.what, why, log=str(tool.log))


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]
