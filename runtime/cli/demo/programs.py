"""The programs of a run: containerd, runc and CRIU, carried by a bundle or got as components."""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from diapause.runtime.components.cache import Cache, carried
from diapause.runtime.components.get import get
from diapause.runtime.components.manifest import load
from diapause.runtime.errors import NotFound

_SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """Folders of programs, in the order in which they are searched."""

    folders: tuple[Path, ...]
    origin: str  # "Debian 12", "the bundle"

    @classmethod
    def find(cls, say: Callable[[str], None]) -> Programs:
        """Get what is missing. Raises DiapauseError."""
        brought = [folder for name in ("containerd-2.4", "runc-1.5") if (folder := carried(name))]
        names = ["criu", "busybox"] if brought else ["debian-pair", "criu", "busybox"]
        got = get(load(), names, Cache.of_user(), say)
        own = Path(sysconfig.get_path("scripts"))
        folders = (own, *(folder / "bin" for folder in (*brought, *got.values())))
        return cls(folders=folders, origin="the bundle" if brought else "Debian's packages")

    def path(self) -> str:
        return ":".join([*map(str, self.folders), _SYSTEM])

    def __getitem__(self, name: str) -> Path:
        """The absolute path of a program."""
        for folder in self.folders:
            if os.access(folder / name, os.X_OK):
                return folder / name
        raise NotFound(
            "program-missing", f"demo: {name}", f"not in {', '.join(map(str, self.folders))}",
            "install the package diapause again",
        )  # fmt: skip

    def version(self, name: str) -> str:
        """`1.6.20` of whatever the program says about itself."""
        text = subprocess.run([self[name], "--version"], check=False, capture_output=True, text=True).stdout
        found = re.search(r"\d+\.\d+(\.\d+)?", text)
        return found[0] if found else "?"
