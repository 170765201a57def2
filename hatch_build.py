"""Build hook: the C parts, the platform tag, and the links of an editable install.

`make -C native` compiles with the `zig cc` of the ziglang package, so a build needs `make` and nothing
else. `DIAPAUSE_BUILD_TARGET` (`x86_64` or `aarch64`) builds for another machine.
"""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

GLIBC = "2.17"  # the oldest C library of a container that our library can be loaded into
PACKAGES = ("shim", "runtime", "hooks")
COMMANDS = ("diapause-runc", "diapause-hook")  # what an environment has in its bin/


class NativeHook(BuildHookInterface[Any]):
    """Adds `diapause/native/` and the C commands to every wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        machine = target_machine()
        root = Path(self.root)
        package = root / "build" / version / "diapause" if version == "editable" else root / "build" / machine
        native = package / "native"
        if version != "editable":
            shutil.rmtree(native, ignore_errors=True)  # a wheel carries what this tree builds, nothing older
        compile_native(root / "native", native, root / "build" / "obj" / machine, machine)
        if version == "editable":
            link_packages(root, package)
        else:
            build_data["force_include"][str(native)] = "diapause/native"
        build_data["shared_scripts"] = {str(native / "bin" / name): name for name in COMMANDS}
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-manylinux_{GLIBC.replace('.', '_')}_{machine}"


def target_machine() -> str:
    machine = os.environ.get("DIAPAUSE_BUILD_TARGET") or platform.machine()
    if machine not in ("x86_64", "aarch64"):
        raise SystemExit(f"diapause: no build for machine {machine!r}: only x86_64 and aarch64 are supported")
    return machine


def compile_native(source: Path, out: Path, objects: Path, machine: str) -> None:
    make = shutil.which("make")
    if make is None:
        raise SystemExit("diapause: building the C parts needs `make`: apt-get install make")
    command = [make, "-C", str(source), f"OUT={out}", f"O={objects}", f"TARGET={machine}-linux-gnu.{GLIBC}"]
    command.append(f"ZIG={sys.executable} -m ziglang")
    if (code := subprocess.run(command, check=False, stdin=subprocess.DEVNULL).returncode) != 0:
        raise SystemExit(f"diapause: building the C parts failed with status {code}: {' '.join(command)}")


def link_packages(root: Path, package: Path) -> None:
    for name in PACKAGES:
        link = package / name
        if not link.is_symlink():
            link.symlink_to(root / name)


def get_build_hook() -> type[NativeHook]:
    return NativeHook
