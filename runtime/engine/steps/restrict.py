"""Mounts of the restored container as config.json has them: read-only, nosuid and so on.

CRIU (4.2.1) leaves out the flags of a bind mount when another one, of the same source or of a folder above
it, came first and has the same: it takes the mount for a copy of that one, and makes it from the source on
the host. Our library lies at several places of a container, and a copy of it serves many containers.
"""

from __future__ import annotations

import errno
import os

from diapause.runtime.engine import bundle, restrictions
from diapause.runtime.errors import Internal
from diapause.runtime.linux import mounts
from diapause.runtime.linux.namespace import MountNamespace
from diapause.runtime.linux.openat2 import openat2
from diapause.runtime.linux.owned import Owned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from diapause.runtime.engine.subject import Subject

_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_TODO = "it takes Linux 5.12, and no file there that is open for writing"


class Restrict:
    """Comes before anything of the container runs. undo: nothing, the container is ended.

    What is not mounted where config.json says is left alone: whoever may unmount may also mount it writable.
    Mount namespaces that the container made for some of its processes are its own affair for the same reason.
    """

    name = "restrict"

    def __init__(self, subject: Subject, bundle: str) -> None:
        self._subject = subject
        self._bundle = bundle

    def describe(self) -> str:
        return "give the container's mounts the restrictions that config.json asks for"

    def execute(self) -> None:
        if self._subject.init is None:
            return
        try:
            with Owned() as stack:
                namespace = stack.enter(MountNamespace(self._subject.init.pid))
                if not namespace.is_ours:
                    namespace.look()
                    self._mend(namespace, _lacking(namespace, bundle.config(self._bundle), stack))
        except (OSError, ValueError) as error:
            raise self._failed(
                f"the container's mounts cannot be compared with config.json: {error}"
            ) from None

    def _mend(self, namespace: MountNamespace, lacking: list[_Lacking]) -> None:
        if not lacking:
            return
        namespace.run(lambda: _add(lacking))
        for mount in lacking:
            if mount.error is not None:
                missing = mounts.describe(mount.attributes)
                why = f"{mount.path} of the container is mounted without {missing}: {mount.error.strerror}"
                raise self._failed(why)

    def _failed(self, why: str) -> Internal:
        return Internal("mount-flags", self._subject.what, why, _TODO)

    def undo(self) -> None:
        pass


class _Lacking:
    """A mount and the attributes that it should have."""

    __slots__ = ("attributes", "error", "fd", "path")

    def __init__(self, path: str, fd: int, attributes: int) -> None:
        self.path = path
        self.fd = fd
        self.attributes = attributes
        self.error: OSError | None = None


def _lacking(namespace: MountNamespace, config: Mapping[str, Any], stack: Owned) -> list[_Lacking]:
    """Every mount that lacks something. The fds belong to `stack`."""
    present = {mount.id: mount.attributes for mount in namespace.table}
    wanted: dict[int, _Lacking] = {}
    for restriction in restrictions.of(config):
        try:
            fd = openat2(namespace.root, restriction.path, os.O_PATH)
        except OSError as error:
            if error.errno in _NOT_THERE:
                continue
            raise
        stack.callback(os.close, fd)
        number = mounts.of_root(fd)
        if number in present and (mounts.is_directory(fd) or not restriction.only_directory):
            wanted[number] = _Lacking(restriction.path, fd, restriction.attributes)
    for number, mount in wanted.items():
        mount.attributes &= ~present[number]
    return [mount for mount in wanted.values() if mount.attributes]


def _add(lacking: list[_Lacking]) -> None:
    """Runs in the container's mount namespace: system calls on fds, nothing else."""
    for mount in lacking:
        try:
            mounts.add_attributes(mount.fd, mount.attributes)
        except OSError as error:
            mount.error = error
