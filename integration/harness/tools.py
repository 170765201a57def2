"""The two sets of real components that every test can run against."""

import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]  # of the source tree
SETS = ("debian", "current")  # Debian 12's pair, and containerd 2.4 with runc 1.5
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolset:
    """One set of components: folders that lie first in the PATH of a private containerd."""

    name: str
    folders: tuple[Path, ...]

    def find(self, program: str) -> Path:
        found = shutil.which(program, path=":".join(map(str, self.folders)))
        if found is None:
            raise FileNotFoundError(f"tool set {self.name} has no {program} in {self.path}; run `make tools`")
        return Path(found)

    @property
    def path(self) -> str:
        return ":".join([*map(str, self.folders), SYSTEM_PATH])


@cache
def toolset(name: str) -> Toolset:
    """The set as the toolbox installed it, or where DIAPAUSE_TOOLS_<NAME> says (folders, colon-separated)."""
    chosen = os.environ.get(f"DIAPAUSE_TOOLS_{name.upper()}")
    if chosen is None:
        chosen = _toolbox("path", name)
    return Toolset(name=name, folders=tuple(Path(p) for p in chosen.split(":")))


@cache
def component(name: str) -> Path:
    """The folder of one component of the toolbox, which gets it if it is missing."""
    return Path(_toolbox("get", name))


def is_there(name: str) -> bool:
    """Whether a component was got before."""
    argv = [sys.executable, "integration/toolbox/toolbox.py", "path", name]
    return subprocess.run(argv, cwd=ROOT, check=False, capture_output=True, timeout=60).returncode == 0


def _toolbox(*args: str) -> str:
    """The toolbox's answer; its progress goes to our stderr."""
    argv = [sys.executable, "integration/toolbox/toolbox.py", *args]
    return subprocess.run(
        argv, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True, timeout=3600
    ).stdout.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Install:
    """Where the installed Diapause lies."""

    bin: Path

    @property
    def runtime(self) -> Path:
        return self.bin / "diapause-runc"

    @property
    def cli(self) -> Path:
        return self.bin / "diapause"


@cache
def install() -> Install:
    """The Diapause under test: DIAPAUSE_BIN, else the environment of this Python."""
    folder = Path(os.environ.get("DIAPAUSE_BIN") or sysconfig.get_path("scripts"))
    if not (folder / "diapause-runc").exists():
        raise FileNotFoundError(
            f"{folder} holds no diapause-runc; install the package there or set DIAPAUSE_BIN"
        )
    return Install(bin=folder)
