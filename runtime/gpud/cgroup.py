"""A cgroup of its own: what a controller pins counts in nobody's limit, and nobody's end ends it."""

from __future__ import annotations

import os

_NAME = "diapause-gpud"


def leave() -> list[str]:
    """Move this process into /diapause-gpud of every hierarchy that can be changed; where it is now.

    Best effort: in a container of somebody's, or without root, it stays where it is.
    """
    moved = []
    for root in _roots():
        path = f"{root}/{_NAME}"
        try:
            os.makedirs(path, exist_ok=True)
            with open(f"{path}/cgroup.procs", "w", encoding="ascii") as file:
                file.write(str(os.getpid()))
        except OSError:
            continue
        moved.append(path)
    return moved


def _roots() -> list[str]:
    """Where the hierarchies are mounted."""
    found = []
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="replace") as file:
            for line in file:
                words = line.split()
                if len(words) > 2 and words[2] in ("cgroup", "cgroup2"):
                    found.append(words[1])
    except OSError:
        pass
    return found
