"""A libcuda that the image brings: CUDA's forward-compatibility package, or one that somebody copied.

The loader prefers it where LD_LIBRARY_PATH or LD_PRELOAD names it, and then the program does not have our
library. One that is no newer than the node's gets our library over it, as the driver's own files do. A newer
one is wanted for what the node's lacks, so it stays, and nothing stands in front of it.

Nothing of the image is mounted or loaded here; paths are resolved below the rootfs, or below the mount that
covers them, once.
"""

from __future__ import annotations

import os
import stat

from diapause.runtime.errors import FailedPrecondition
from diapause.runtime.oci import gpu
from diapause.runtime.oci.edits.mounts import is_bind
from diapause.runtime.oci.inside import open_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from diapause.runtime.oci.spec import Spec

PACKAGES = "/usr/local"  # CUDA's lie in cuda-N.N below it, with links to them
COMPAT = "compat"
HOOK = "enable-cuda-compat"  # NVIDIA's: makes the loader of a container prefer its newer one
OPTIONS = ["bind", "ro", "nosuid", "nodev"]
MOST = 64  # files that are looked at; an image has a handful


def find(spec: Spec) -> dict[str, bool]:
    """Where the container has a libcuda of its own, links resolved, and whether the loader prefers it."""
    found: dict[str, bool] = {}
    preferred = [*_variable(spec, "LD_LIBRARY_PATH"), *map(os.path.dirname, _preloaded(spec))]
    hook = _has_hook(spec)
    for directory in dict.fromkeys([*preferred, *_packages(spec)]):
        for path in _libcudas(spec, directory):
            used = directory in preferred or (hook and os.path.basename(directory) == COMPAT)
            found[path] = found.get(path, False) or used
            if len(found) >= MOST:
                return found
    return found


def refuse_directories(spec: Spec) -> None:
    """A file cannot be mounted on a directory, and runc says no more than that. Raises FailedPrecondition."""
    for path in dict.fromkeys(mount["destination"] for mount in gpu.cuda_mounts(spec)):
        base, prefix = _holder(spec, os.path.dirname(path))
        if not base:
            continue
        try:
            fd, _ = open_in(base, path if prefix == "/" else path.removeprefix(prefix), os.O_PATH)
        except OSError:
            continue
        try:
            if not stat.S_ISDIR(os.fstat(fd).st_mode):
                continue
        finally:
            os.close(fd)
        why = f"{path} in the image is a directory, and the driver's file belongs there"
        raise FailedPrecondition("libcuda-target-directory", "libcuda", why, "take it out of the image")


def is_newer(path: str, version: str) -> bool:
    """By the names of the files: libcuda.so.580.159.03. The software GPU is newer than all."""
    image, node = (_numbers(text) for text in (os.path.basename(path).removeprefix("libcuda.so"), version))
    return bool(image and node) and image > node


def cover(spec: Spec, library: str, version: str) -> None:
    """Put our library over every libcuda of the image that is no newer than `version`."""
    for path in find(spec):
        if not is_newer(path, version) and spec.mount_at(path) is None:
            mount = {"destination": path, "type": "bind", "source": library, "options": list(OPTIONS)}
            spec.mounts.append(mount)


def _numbers(text: str) -> tuple[int, ...]:
    """(580, 159, 3) of "580.159.03", () of what is no version of a driver."""
    parts = text.lstrip(".").split(".")
    return tuple(map(int, parts)) if len(parts) > 1 and all(map(str.isdigit, parts)) else ()


def _variable(spec: Spec, name: str) -> list[str]:
    """The absolute paths in a variable of the container; the last entry of a name counts."""
    value = ""
    for entry in (spec.data.get("process") or {}).get("env") or []:
        found, _, text = str(entry).partition("=")
        if found == name:
            value = text
    parts = value.replace(";", ":").replace(" ", ":").split(":")  # the loader takes all three, if not in both
    return [os.path.normpath(part) for part in parts if part.startswith("/")]


def _preloaded(spec: Spec) -> list[str]:
    return [path for path in _variable(spec, "LD_PRELOAD") if gpu.is_libcuda(path)]


def _has_hook(spec: Spec) -> bool:
    hooks = (spec.data.get("hooks") or {}).get("createContainer") or []
    return any(HOOK in (hook.get("args") or []) for hook in hooks)


def _packages(spec: Spec) -> Iterator[str]:
    for name in _names(spec, PACKAGES):
        if name.startswith("cuda"):
            yield f"{PACKAGES}/{name}/{COMPAT}"


def _libcudas(spec: Spec, directory: str) -> Iterator[str]:
    for name in _names(spec, directory):
        if gpu.is_libcuda(name) and (path := _resolved(spec, f"{directory}/{name}")):
            yield path


def _names(spec: Spec, directory: str) -> list[str]:
    try:
        fd, _ = _open(spec, directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK)
    except OSError:
        return []
    try:
        return sorted(os.listdir(fd))
    finally:
        os.close(fd)


def _resolved(spec: Spec, path: str) -> str:
    """The path of the regular file behind it as the container sees it, "" if there is none of 64 bits."""
    try:
        fd, found = _open(spec, path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode) or os.pread(fd, 5, 0).startswith(b"\x7fELF\x01"):
            return ""
    finally:
        os.close(fd)
    return found if gpu.is_libcuda(found) and spec.mount_at(found) is None else ""


def _open(spec: Spec, path: str, flags: int) -> tuple[int, str]:
    """(fd, the path that the container has it at). A link in a mount that leads out of it is not followed."""
    base, prefix = _holder(spec, path)
    if not base:
        raise FileNotFoundError(2, "in a mount that starts empty", path)
    rest = path if prefix == "/" else path.removeprefix(prefix)
    if not rest:
        return os.open(base, flags | os.O_CLOEXEC | os.O_NOFOLLOW), prefix
    fd, found = open_in(base, rest, flags)
    return fd, os.path.normpath(f"{prefix}/{found}").replace("//", "/")


def _holder(spec: Spec, path: str) -> tuple[str, str]:
    """(directory of the host, of the container) that hold a path: those of the rootfs or of a bind mount.

    The first is "" for a mount of another kind, which starts empty.
    """
    found: tuple[str, str] = (_rootfs(spec), "/")
    depth = 0
    for mount in spec.data.get("mounts") or []:
        place = os.path.normpath(mount["destination"])
        if (path == place or path.startswith(f"{place.rstrip('/')}/")) and len(place) >= depth:
            found, depth = (_source(spec, mount), place), len(place)
    return found


def _source(spec: Spec, mount: dict[str, Any]) -> str:
    if not is_bind(mount) or not mount.get("source"):
        return ""
    return os.path.realpath(os.path.join(spec.bundle, mount["source"]))


def _rootfs(spec: Spec) -> str:
    path = str((spec.data.get("root") or {}).get("path") or "rootfs")
    return os.path.realpath(os.path.join(spec.bundle, path))
