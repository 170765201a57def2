"""SHA-256 of files that are large and rarely change, remembered by what changes with them.

The memory is a file per inode in the state directory: size, mtime, ctime and the digest. ctime cannot be
set from user space, so a file that was replaced or rewritten is read again; it has the kernel's tick as its
grain, so nothing is remembered of a file that changed just now.
"""

from __future__ import annotations

import os
import time

from diapause.runtime import private
from diapause.runtime.container import state_dir
from diapause.runtime.errors import DiapauseError

CHUNK = 1 << 20
SETTLED = 20_000_000  # nanoseconds; a tick has up to 10 ms


class FileDigest:
    __slots__ = ("digest", "size")

    def __init__(self, digest: str, size: int) -> None:
        self.digest = digest  # "sha256:…"
        self.size = size


def of_file(path: str) -> FileDigest:
    """Raises OSError."""
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        stamp = f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
        memory = f"{state_dir()}/digests/{status.st_dev}-{status.st_ino}"
        if not (digest := _remembered(memory, stamp)):
            settled = _has_settled(status)
            digest = _compute(file.fileno())
            if settled:
                _remember(memory, f"{stamp} {digest}\n")
    return FileDigest(digest, status.st_size)


def stamp_of(path: str, wanted: str) -> str:
    """What changes when the file with the digest `wanted` does: numbers of device, inode, size and times.

    "" if it is another file now, or too young to tell.
    """
    try:
        status = os.stat(path)
        settled = _has_settled(status)
        if not settled or of_file(path).digest != wanted:
            return ""
    except OSError:
        return ""
    where = f"{status.st_dev} {status.st_ino} {status.st_size}"
    return f"{where} {status.st_mtime_ns} {status.st_ctime_ns}"


def _has_settled(status: os.stat_result) -> bool:
    return time.time_ns() - status.st_ctime_ns > SETTLED


def difference(path: str, wanted: str) -> str:
    """What tells the file from the one with the digest `wanted`, in words; "" for nothing."""
    try:
        found = of_file(path).digest
    except OSError as e:
        return f"{path}: {e.strerror}"
    return "" if found == wanted else f"{path} has changed (digest {found[7:23]}…, recorded {wanted[7:23]}…)"


def _remembered(memory: str, stamp: str) -> str:
    try:
        with open(memory, encoding="ascii") as file:
            known, _, digest = file.read().rstrip("\n").rpartition(" ")
    except OSError:
        return ""
    return digest if known == stamp else ""


def _compute(fd: int) -> str:
    from hashlib import sha256

    digest = sha256()
    while chunk := os.read(fd, CHUNK):
        digest.update(chunk)
    return f"sha256:{digest.hexdigest()}"


def _remember(memory: str, text: str) -> None:
    """A memory that cannot be written costs time, nothing else."""
    from diapause.runtime.linux.files import write_atomic

    try:
        private.make(state_dir(), "digests")
        write_atomic(memory, text.encode(), sync=False)
    except (DiapauseError, OSError):
        pass
