"""Bind mounts as CRIU can restore them: sources without links, sub-mounts declared one by one."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from diapause.runtime.oci.spec import Spec

_ATTRIBUTES = (
    "ro", "rw", "nosuid", "suid", "nodev", "dev", "noexec", "exec", "nodiratime", "diratime", "relatime",
    "norelatime", "noatime", "atime", "strictatime", "nostrictatime", "nosymfollow", "symfollow", "idmap",
)  # fmt: skip
RECURSIVE = {"rbind": "bind", **{f"r{name}": name for name in _ATTRIBUTES}}
PROPAGATION = ("rshared", "rslave", "rprivate", "shared", "slave", "private")


def is_bind(mount: dict[str, Any]) -> bool:
    options = mount.get("options") or []
    return mount.get("type") == "bind" or "bind" in options or "rbind" in options


def resolve_sources(spec: Spec) -> None:
    """A source that is a link, or lies behind one, dumps but does not restore."""
    for mount in spec.mounts:
        source = mount.get("source")
        if source and is_bind(mount):
            real = os.path.realpath(os.path.join(spec.bundle, source))
            if real != source and os.path.exists(real):
                mount["source"] = real


def split_recursive(spec: Spec, mount_points: Iterable[str]) -> None:
    """A recursive bind that takes sub-mounts with it becomes plain binds of the tree and of each of them.

    runc declares only what config.json names as external, and CRIU refuses the rest ("FS mnt … unsupported").
    Each gets what it had: `ro` of a recursive bind is for the top alone, `rro` for all.
    """
    points = sorted(set(mount_points))
    result: list[dict[str, Any]] = []
    for mount in spec.mounts:
        below = _below(mount, points)
        options = mount.get("options") or []
        for_all = [RECURSIVE.get(word, word) for word in options if word in RECURSIVE or word in PROPAGATION]
        if below:
            mount["options"] = [RECURSIVE.get(word, word) for word in options]
        result.append(mount)
        for point in below:
            rest = point.removeprefix(mount["source"].rstrip("/")).lstrip("/")
            destination = os.path.join(mount["destination"], rest)
            result.append({**mount, "source": point, "destination": destination, "options": list(for_all)})
    spec.mounts[:] = result


def _below(mount: dict[str, Any], points: list[str]) -> list[str]:
    source = mount.get("source")
    if not source or "rbind" not in (mount.get("options") or []):
        return []
    prefix = source.rstrip("/") + "/"
    return [point for point in points if point.startswith(prefix) and os.path.exists(point)]


def host_mount_points(table: str = "/proc/self/mountinfo") -> list[str]:
    """The mount points of this process's namespace, octal escapes undone.

    Without the unbindable ones: a recursive bind leaves them out, and a bind of one fails.
    """
    points = []
    with open(table, "rb") as file:
        for line in file:
            if b" unbindable " in line.partition(b" - ")[0] + b" ":
                continue
            point = line.split(b" ", 5)[4]
            for escape, byte in ((b"\\040", b" "), (b"\\011", b"\t"), (b"\\012", b"\n"), (b"\\134", b"\\")):
                point = point.replace(escape, byte)
            points.append(os.fsdecode(point))
    return points
