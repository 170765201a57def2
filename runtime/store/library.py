"""Our library in a snapshot: another host, or an upgraded one, restores with the one the processes loaded.

It travels as a file that the manifest lists, and is known by the SHA-256 that the manifest names. Only a
container that is restored from such a snapshot ever runs it; the host loads it nowhere.
"""

from __future__ import annotations

import os

from diapause.runtime.linux.files import read_regular, write_atomic
from diapause.runtime.store import layout

LIMIT = 16 << 20  # bytes; ours has some hundred thousand
_SHARED_OBJECT = 3  # ET_DYN
_MACHINES = {"x86_64": 62, "aarch64": 183}  # EM_X86_64, EM_AARCH64


def put(snapshot: str, source: str) -> None:
    """Copy the library at `source` into the directory of a snapshot; "": it has none, and an old one goes."""
    path = f"{snapshot}/{layout.LIBRARY}"
    try:
        write_atomic(path, read_regular(source, limit=LIMIT), mode=layout.FILE_MODE, sync=False)
    except FileNotFoundError:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass


def take(snapshot: str, digest: str) -> bytes:
    """The library with that digest ("sha256:…"). Raises OSError, ValueError for a file that is another."""
    from hashlib import sha256

    data = read_regular(f"{snapshot}/{layout.LIBRARY}", limit=LIMIT)
    found = f"sha256:{sha256(data).hexdigest()}"
    if found != digest:
        raise ValueError(f"has the digest {found[:23]}…")
    if not _is_library(data):
        raise ValueError(f"is no 64-bit library for {os.uname().machine}")
    return data


def _is_library(data: bytes) -> bool:
    kind, machine = (int.from_bytes(data[at : at + 2], "little") for at in (16, 18))
    wanted = (_SHARED_OBJECT, _MACHINES.get(os.uname().machine))
    return len(data) > 64 and data.startswith(b"\x7fELF\x02\x01") and (kind, machine) == wanted
