"""Where components lie, once for each version, outside any source tree.

- `<cache>/components/<key>/bin/…`: complete, or not there at all, because it is made as tmp/<key> and renamed
- `<cache>/downloads/<key>/`: survives a failure, so that the next try goes on from there
- `<cache>/log/<name>.log`: what the tools printed
- `<cache>/lock/<key>`: held by whoever makes the component
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from diapause.runtime.components.manifest import Component
from diapause.runtime.linux.locks import Lock


class Cache:
    """The cache of one user."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def of_user(cls) -> Cache:
        """`$DIAPAUSE_CACHE`, or the folder `diapause` in the user's cache directory."""
        if given := os.environ.get("DIAPAUSE_CACHE"):
            return cls(Path(given).absolute())
        base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        return cls(Path(base, "diapause"))

    def find(self, component: Component) -> Path | None:
        """The component's folder if it is there; one that this installation carries comes first."""
        for place in (carried(component.name), self.root / "components" / component.key):
            if place is not None and place.is_dir():
                return place
        return None

    def temporary(self, component: Component) -> Path:
        return self._fresh("tmp", component.key)

    def downloads(self, component: Component) -> Path:
        return self._folder("downloads", component.key)

    def log(self, component: Component) -> Path:
        return self._folder("log") / f"{component.name}.log"

    def try_lock(self, component: Component) -> Lock | None:
        return Lock.try_take(str(self._folder("lock") / component.key))

    def publish(self, component: Component, made: Path) -> Path:
        """Give a finished folder its name, and forget what was downloaded for it."""
        place = self._folder("components") / component.key
        os.rename(made, place)
        shutil.rmtree(self.downloads(component), ignore_errors=True)
        return place

    def _folder(self, *parts: str) -> Path:
        path = self.root.joinpath(*parts)
        path.mkdir(parents=True, exist_ok=True)
        return path

    def _fresh(self, *parts: str) -> Path:
        shutil.rmtree(self.root.joinpath(*parts), ignore_errors=True)
        return self._folder(*parts)


def carried(name: str) -> Path | None:
    """The folder of a component that came with this installation, as a bundle has them."""
    path = Path(sys.prefix, "components", name)
    return path if path.is_dir() else None
