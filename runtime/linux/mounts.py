"""Mounts: the tables of mount namespaces, and what can be changed about a mount that is there."""

from __future__ import annotations

import ctypes
import os
import stat

from diapause.runtime.linux import libc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# Attributes of mount_setattr(2), under the names that mountinfo has for them. noatime is a value of a field.
READ_ONLY = 0x1
NOATIME = 0x10
ATTRIBUTES = {
    "ro": READ_ONLY,
    "nosuid": 0x2,
    "nodev": 0x4,
    "noexec": 0x8,
    "noatime": NOATIME,
    "nodiratime": 0x80,
    "nosymfollow": 0x200000,
}
_ATIME = 0x70  # that field

_AT_EMPTY_PATH = 0x1000
_MNT_DETACH = 2
_UMOUNT_NOFOLLOW = 8
_STATX_MNT_ID = 0x1000
_STATX_ATTR_MOUNT_ROOT = 0x2000
_EMPTY = ctypes.create_string_buffer(b"")  # the path of an fd itself
_ESCAPES = ((b"\\040", b" "), (b"\\011", b"\t"), (b"\\012", b"\n"), (b"\\134", b"\\"))


class Mount:
    """A line of mountinfo."""

    __slots__ = ("attributes", "id", "point")

    def __init__(self, line: bytes) -> None:
        number, _, _, _, point, options, _ = line.split(b" ", 6)
        for escape, byte in _ESCAPES:
            point = point.replace(escape, byte)
        self.id = int(number)
        self.point = os.fsdecode(point)
        self.attributes = attributes(options.decode().split(","))


def table(text: bytes) -> list[Mount]:
    return [Mount(line) for line in text.splitlines()]


def attributes(names: Iterable[str]) -> int:
    """Those that restrict what can be done through a mount; other names count nothing."""
    found = 0
    for name in names:
        found |= ATTRIBUTES.get(name, 0)
    return found


def describe(found: int) -> str:
    return ",".join(name for name, bit in ATTRIBUTES.items() if found & bit)


def below(folders: Iterable[str]) -> list[str]:
    """Mount points of this namespace at or below some folders (absolute, without links), oldest first."""
    prefixes = [folder.rstrip("/") + "/" for folder in folders]
    with open("/proc/self/mountinfo", "rb") as file:
        points = [mount.point for mount in table(file.read())]
    return [point for point in points if any(f"{point}/".startswith(prefix) for prefix in prefixes)]


def detach(point: str) -> None:
    """Unmount, however busy; `point` itself is not followed if it is a link."""
    libc.umount2(point, _MNT_DETACH | _UMOUNT_NOFOLLOW)


def of_root(fd: int) -> int:
    """The id in mountinfo of the mount whose root `fd` is, 0 if it is something else on a mount."""
    answer = ctypes.create_string_buffer(256)  # struct statx
    call = libc.SYS_STATX[os.uname().machine]
    libc.check(libc.syscall(call, fd, _EMPTY, _AT_EMPTY_PATH, _STATX_MNT_ID, answer), f"fd {fd}")
    marks = int.from_bytes(answer.raw[8:16], "little")
    return int.from_bytes(answer.raw[144:152], "little") if marks & _STATX_ATTR_MOUNT_ROOT else 0


def is_directory(fd: int) -> bool:
    return stat.S_ISDIR(os.fstat(fd).st_mode)


def add_attributes(fd: int, added: int) -> None:
    """mount_setattr(2) on the mount whose root `fd` is; it has to be of this thread's mount namespace."""
    attr = libc.MountAttr(added, _ATIME if added & NOATIME else 0, 0, 0)
    size = ctypes.sizeof(attr)
    libc.check(libc.syscall(libc.SYS_MOUNT_SETATTR, fd, _EMPTY, _AT_EMPTY_PATH, attr, size), f"fd {fd}")
