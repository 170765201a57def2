"""The createContainer hooks of NVIDIA's CDI specifications, as far as a restore would miss or break them.

runc does not run createContainer hooks at a restore. Links to driver libraries become mounts of the
same files. The hook that masks /proc/driver/nvidia/params mounts behind runc's back, which CRIU refuses to
dump ("doesn't have a proper root mount"), so it is left out.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from diapause.runtime.oci.spec import Spec

PROGRAMS = ("nvidia-cdi-hook", "nvidia-ctk")
LINKS = "create-symlinks"
MASK = "disable-device-node-modification"


def replace_hooks(spec: Spec) -> None:
    if "createContainer" not in spec.hook_stages:
        return
    stage = spec.hooks("createContainer")
    for hook in list(stage):
        words = [str(word) for word in hook.get("args") or []]
        if os.path.basename(hook["path"]) not in PROGRAMS:
            continue
        if MASK in words or (LINKS in words and _links_to_mounts(spec, words)):
            stage.remove(hook)


def _links_to_mounts(spec: Spec, words: list[str]) -> bool:
    """True if every link of the hook is a mount now."""
    links = [word.removeprefix("--link=") for word in words if word.startswith("--link=")]
    links += [words[at + 1] for at, word in enumerate(words[:-1]) if word == "--link"]
    mounts = []
    for link in links:
        target, _, path = link.partition("::")
        directory = os.path.dirname(path)
        source = _source(spec, os.path.normpath(os.path.join(directory, target)), links)
        if source is None:
            return False
        mounts.append({**source, "destination": path})
    for mount in mounts:
        if spec.mount_at(mount["destination"]) is None:
            spec.mounts.append(mount)
    return True


def _source(spec: Spec, path: str, links: list[str], depth: int = 4) -> dict[str, Any] | None:
    """The mount that a chain of links ends at, libcuda.so → libcuda.so.1 → libcuda.so.580.159.03."""
    if (mount := spec.mount_at(path)) is not None:
        return dict(mount)
    for link in links:
        target, _, name = link.partition("::")
        if depth and os.path.normpath(name) == path:
            further = os.path.normpath(os.path.join(os.path.dirname(name), target))
            return _source(spec, further, links, depth - 1)
    return None
