"""The manifest: names and versions of components, and the recipe of each."""

from __future__ import annotations

import hashlib
import json
import platform
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diapause.runtime.errors import InvalidArgument, NotFound

OWN = Path(__file__).with_name("manifest.toml")
_KNOWN = {"about", "version", "recipe", "programs", "packages", "suite", "script", "needs"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One entry; a folder with a `bin/` once it is there."""

    name: str
    about: str
    version: str
    recipe: str
    programs: tuple[str, ...]
    options: Mapping[str, Any]  # what the recipe reads
    folder: Path  # of the manifest: scripts are named relative to it

    @property
    def key(self) -> str:
        """Name and version, and a digest of everything that decides what gets built."""
        parts = [self.name, self.version, self.recipe, self.programs, dict(self.options), machine()]
        text = json.dumps(parts, sort_keys=True).encode()
        for script in (self.options.get("script", ""), *self.options.get("needs", ())):
            text += (self.folder / script).read_bytes() if script else b""
        return f"{self.name}-{self.version}-{hashlib.sha256(text).hexdigest()[:10]}"


def load(*paths: Path) -> dict[str, Component]:
    """Our own manifest, then the given ones; a later entry replaces an earlier one of its name."""
    found: dict[str, Component] = {}
    for path in (OWN, *paths):
        try:
            tables = tomllib.loads(path.read_text())
        except FileNotFoundError as error:
            raise NotFound("manifest-missing", f"manifest {path}", "no such file") from error
        except tomllib.TOMLDecodeError as error:
            raise InvalidArgument("manifest-malformed", f"manifest {path}", str(error)) from error
        found.update({name: _component(path, name, table) for name, table in tables.items()})
    return found


def pick(components: Mapping[str, Component], name: str) -> Component:
    try:
        return components[name]
    except KeyError:
        todo = f"known are: {', '.join(sorted(components))}"
        raise NotFound("component-unknown", f"component {name}", "not in the manifest", todo) from None


def machine() -> str:
    """The Debian release and processor that a component was made for."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        release = {}
    return f"{release.get('ID', 'linux')}-{release.get('VERSION_CODENAME', '')}-{platform.machine()}"


def _component(path: Path, name: str, table: Mapping[str, Any]) -> Component:
    unknown = sorted(set(table) - _KNOWN)
    missing = sorted({"version", "recipe", "programs"} - set(table))
    if unknown or missing:
        why = f"unknown key {unknown[0]}" if unknown else f"key {missing[0]} is missing"
        raise InvalidArgument("manifest-malformed", f"manifest {path}: {name}", why)
    return Component(
        name=name,
        about=table.get("about", ""),
        version=table["version"],
        recipe=table["recipe"],
        programs=tuple(table["programs"]),
        options={key: table[key] for key in ("packages", "suite", "script", "needs") if key in table},
        folder=path.parent,
    )
