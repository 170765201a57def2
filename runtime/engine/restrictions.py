"""What config.json says that a container may not do through its mounts, as runc understands it."""

from __future__ import annotations

from diapause.runtime.linux import mounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# Options that take a restriction back; the last one of a mount wins.
_OPPOSITES = {
    "rw": "ro",
    "suid": "nosuid",
    "dev": "nodev",
    "exec": "noexec",
    "atime": "noatime",
    "strictatime": "noatime",
    "diratime": "nodiratime",
    "symfollow": "nosymfollow",
}


class Restriction:
    """Attributes of the mount at `path`, if there is one."""

    __slots__ = ("attributes", "only_directory", "path")

    def __init__(self, path: str, attributes: int, *, only_directory: bool = False) -> None:
        self.path = path
        self.attributes = attributes
        self.only_directory = only_directory


def of(config: Mapping[str, Any]) -> list[Restriction]:
    """In the order in which runc mounts: of several at one place the last one counts."""
    found = [Restriction(mount["destination"], options(mount)) for mount in config.get("mounts") or []]
    linux = config.get("linux") or {}
    found += [Restriction(path, mounts.READ_ONLY) for path in linux.get("readonlyPaths") or []]
    # A file is masked by /dev/null, which does not mind being written to.
    found += [
        Restriction(path, mounts.READ_ONLY, only_directory=True) for path in linux.get("maskedPaths") or []
    ]
    if (config.get("root") or {}).get("readonly"):
        found.insert(0, Restriction("/", mounts.READ_ONLY))
    return found


def options(mount: Mapping[str, Any]) -> int:
    """The attributes that a mount's options ask for.

    A recursive one ("rro") counts for the mount itself: CRIU knows no mounts below but those that config.json
    names, and those have options of their own.
    """
    wanted = 0
    for option in mount.get("options") or []:
        plain = option in mounts.ATTRIBUTES or option in _OPPOSITES
        name = option if plain else option.removeprefix("r")
        if opposite := _OPPOSITES.get(name):
            wanted &= ~mounts.ATTRIBUTES[opposite]
        else:
            wanted |= mounts.attributes([name])
    return wanted
