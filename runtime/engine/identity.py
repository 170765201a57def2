"""Whether a snapshot can come back with what this host and the new specification offer."""

from __future__ import annotations

from diapause.runtime.errors import FailedPrecondition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from diapause.runtime.store.manifest import Manifest


def compare(document: Manifest, state: Mapping[str, Any], what: str) -> None:
    """Raises FailedPrecondition: driver-differs, software-differs, library-differs,
    libcuda-target-missing."""
    _library(document, state, what)
    wanted = document.driver
    if wanted is None:
        return
    if document.software != bool(state.get("software")):
        kinds = ("a real GPU", "the software GPU")
        why = f"the snapshot was taken on {kinds[document.software]}, the container has the other"
        raise FailedPrecondition("software-differs", what, why, "restore where the same kind of GPU is")
    driver = state.get("driver") or {}
    here = driver.get("libcuda") or {}
    if (wanted["version"], wanted["digest"]) != (driver.get("version"), here.get("digest")):
        why = (
            f"the snapshot needs driver {wanted['version']} ({_short(wanted['digest'])}), "
            f"this host has {driver.get('version')} ({_short(str(here.get('digest')))})"
        )
        raise FailedPrecondition("driver-differs", what, why, "restore on a host with the same driver")


def _library(document: Manifest, state: Mapping[str, Any], what: str) -> None:
    """A library of another content at the same place would crash the processes that have it loaded."""
    here = (state.get("library") or {}).get("digest", "")
    if document.library != here:
        why = f"the snapshot has the library {_short(document.library)}, the container gets {_short(here)}"
        raise FailedPrecondition("library-differs", what, why, "use the same version of Diapause")
    targets = state.get("targets") or []
    if missing := [path for path in document.targets if path not in targets]:
        why = f"the snapshot has a libcuda at {missing[0]}, the container has none there"
        raise FailedPrecondition("libcuda-target-missing", what, why, "ask for the GPU as at the first start")


def _short(digest: str) -> str:
    return digest[:19] or "none"
