"""Copies of CRIU's logs that survive a failure: the originals vanish with the bundle."""

from __future__ import annotations

import os
import time

from diapause.runtime import private
from diapause.runtime.container import state_dir
from diapause.runtime.errors import DiapauseError

KEPT = 32  # failures
_LIMIT = 16 << 20  # bytes per file


def keep(container_id: str, paths: list[str]) -> str:
    """Copy the files that exist to a new directory; the path of the first copy, "" if there is none.

    Never fails: what went wrong before is more important.
    """
    name = f"{container_id[:128]}-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}"
    copied = []
    try:
        folder = private.make(state_dir(), "logs")
        for path in paths:
            if os.path.isfile(path):
                os.makedirs(f"{folder}/{name}", mode=0o700, exist_ok=True)
                copied.append(_copy(path, f"{folder}/{name}/{os.path.basename(path)}"))
        _prune(folder)
    except (DiapauseError, OSError):
        pass
    return copied[0] if copied else ""


def _copy(source: str, target: str) -> str:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(source, "rb") as reader, os.fdopen(os.open(target, flags, 0o600), "wb") as writer:
        reader.seek(max(0, os.fstat(reader.fileno()).st_size - _LIMIT))
        writer.write(reader.read(_LIMIT))
    return target


def _prune(folder: str) -> None:
    import shutil

    entries = sorted(os.scandir(folder), key=lambda entry: entry.stat(follow_symlinks=False).st_mtime)
    for entry in entries[:-KEPT]:
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            os.unlink(entry.path)  # the trace of an error that nobody foresaw
