"""openat2(2): paths below a directory that nobody can lead out of it."""

import ctypes
import os

from diapause.runtime.linux import libc

RESOLVE_NO_MAGICLINKS = 0x02
RESOLVE_NO_SYMLINKS = 0x04
RESOLVE_BENEATH = 0x08
RESOLVE_IN_ROOT = 0x10


def openat2(directory: int, path: str, flags: int, *, mode: int = 0, resolve: int = RESOLVE_IN_ROOT) -> int:
    """Open `path` below the directory fd; always close-on-exec. The caller owns the fd.

    With RESOLVE_IN_ROOT absolute paths and links stay below `directory`, as in a chroot.
    """
    how = libc.OpenHow(flags | os.O_CLOEXEC, mode, resolve | RESOLVE_NO_MAGICLINKS)
    name = ctypes.create_string_buffer(os.fsencode(path))
    size = ctypes.sizeof(how)
    return libc.check(libc.syscall(libc.SYS_OPENAT2, directory, name, how, size), path)
