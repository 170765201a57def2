"""What the edit of a restore may take from a snapshot: engine, digest of the library, targets of its mounts.

Everything else in the image directory is the engine's business. The file is hostile input: a regular file
that is no link, bounded, and each value checked against what it can be.
"""

from __future__ import annotations

import os

from diapause.runtime import json
from diapause.runtime.errors import FailedPrecondition, InvalidArgument
from diapause.runtime.oci import copies, gpu

MANIFEST = "diapause.json"
LIMIT = 64 << 20  # bytes


def has_manifest(image: str) -> bool:
    return os.path.lexists(f"{image}/{MANIFEST}")


def read(image: str) -> tuple[str, str, list[str]]:
    """(engine, "sha256:…" of the library or "", targets) of the manifest."""
    from diapause.runtime.linux.files import read_regular

    path = f"{image}/{MANIFEST}"
    try:
        data = json.loads(read_regular(path, limit=LIMIT).decode())
        library = (data["library"] or {}).get("digest", "")
        engine, targets = data["engine"], data["targets"]
        if engine not in ("intercept", "driver") or not isinstance(library, str) or not _are_targets(targets):
            raise ValueError("a value that no Diapause writes")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as e:
        why = f"{path} cannot be read: {type(e).__name__} {e}"
        raise InvalidArgument("manifest-malformed", "snapshot", why, "take the checkpoint again") from None
    if library and not copies.existing(library):
        why = f"the library {library[:19]}… that the processes have loaded is not on this host"
        todo = f"copy {copies.directory()} from the host that took the checkpoint"
        raise FailedPrecondition("library-not-here", "snapshot", why, todo)
    return engine, library, targets


def _are_targets(targets: object) -> bool:
    return isinstance(targets, list) and all(
        isinstance(target, str)
        and target.startswith("/")
        and os.path.normpath(target) == target
        and gpu.is_libcuda(target)
        for target in targets
    )
