"""What the edit of a restore may take from a snapshot: the library's digest and the targets of its mounts.

Everything else comes from the new specification and this host. The engine reads and verifies the rest.
"""

from __future__ import annotations

import os

from diapause.runtime.errors import FailedPrecondition, InvalidArgument
from diapause.runtime.oci import copies, gpu
from diapause.runtime.store import layout, library, manifest


def has_manifest(image: str) -> bool:
    return os.path.lexists(f"{image}/{layout.MANIFEST}")


def read(image: str) -> tuple[str, list[str]]:
    """("sha256:…" of the library that its processes have loaded, "" for none; targets).

    Raises what the manifest's reader does, and FailedPrecondition if neither this host nor the snapshot has
    that library.
    """
    from diapause.runtime.linux.files import read_regular

    path = f"{image}/{layout.MANIFEST}"
    try:
        data = read_regular(path, limit=manifest.MAX_BYTES)
    except OSError as e:
        why = (e.strerror or "").lower()
        raise InvalidArgument("snapshot-bad-file", path, why, "take the checkpoint again") from None
    snapshot = manifest.decode(data, path)
    if strange := [target for target in snapshot.targets if not _is_target(target)]:
        why = f"it names {strange[0]!r} as the place of a libcuda"
        raise InvalidArgument("snapshot-malformed", path, why, "take the checkpoint again")
    if snapshot.library and not copies.find(snapshot.library):
        _adopt(image, snapshot.library, path)
    return snapshot.library, snapshot.targets


def _adopt(image: str, digest: str, where: str) -> None:
    """Take over the library that travels in the snapshot: its address is its digest, so it replaces none."""
    try:
        data = library.take(image, digest)
    except (OSError, ValueError) as e:
        why = f"this host lacks the library {digest[:23]}…, which the saved processes have loaded"
        why += f", and the snapshot's {layout.LIBRARY}: {getattr(e, 'strerror', None) or e}".lower()
        todo = f"copy {copies.directory()} from the host that took the checkpoint"
        raise FailedPrecondition("library-not-here", where, why, todo) from None
    copies.store(data, digest.removeprefix("sha256:"))


def _is_target(path: str) -> bool:
    return path.startswith("/") and os.path.normpath(path) == path and gpu.is_libcuda(path)
