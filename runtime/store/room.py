"""How much room the local store takes, has left, and has promised to those who are writing."""

from __future__ import annotations

import os

from diapause.runtime.linux import files
from diapause.runtime.store import layout

RESERVED = "reserved"  # in a directory that is being written: how many bytes it may come to
HEADROOM = 64 << 20  # bytes that stay free
SEGMENTS = ".segments"  # in memory-dir: a directory for each GPU, where its controller keeps faulted files


def reserve(path: str, bytes: int) -> None:
    files.write_atomic(f"{path}/{RESERVED}", str(bytes).encode(), mode=layout.FILE_MODE, sync=False)


def free_memory(top: str) -> int:
    """Bytes of a tmpfs that nobody uses: free ones, and segments that belong to no snapshot."""
    free = free_bytes(top) - HEADROOM
    for folder, _, names in os.walk(f"{top}/{SEGMENTS}"):
        found = (os.lstat(f"{folder}/{name}") for name in names)
        free += sum(stat.st_blocks * 512 for stat in found if stat.st_nlink == 1)
    return free


def free_bytes(path: str) -> int:
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


def allocated(path: str) -> int:
    """Bytes that the files of a directory take."""
    total = 0
    try:
        for file in os.scandir(path):
            total += file.stat(follow_symlinks=False).st_blocks * 512
    except (FileNotFoundError, NotADirectoryError):
        pass
    return total


def reserved(path: str) -> int:
    try:
        return int(files.read_regular(f"{path}/{RESERVED}", limit=32))
    except (OSError, ValueError):
        return 0


def taken(path: str) -> int:
    """Bytes that count against the limit: those on disk, or those it was made for."""
    return max(allocated(path), reserved(path))


def outstanding(path: str) -> int:
    """Bytes that are reserved and not yet written."""
    return max(0, reserved(path) - allocated(path))
