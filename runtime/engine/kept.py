"""The snapshot of a container that did not come back: it is all there is, and must not go with its directory.

A client removes a temporary directory of its own as soon as the runtime reports an error.
"""

from __future__ import annotations

from diapause.runtime.errors import DiapauseError
from diapause.runtime.store import layout, preserve
from diapause.runtime.store.local import Local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.store.local import Settings


def keep(image: str, settings: Settings, container_id: str) -> str:
    """Where the snapshot stays, as words that tell what to do.

    Never fails: what went wrong before counts more.
    """
    if not layout.is_temporary(image):
        return f"restore it from the snapshot in {image}"
    note = f"container {container_id} did not come back after its checkpoint"
    try:
        path = preserve.keep(image, Local.of(settings), id=container_id, note=note)
    except (DiapauseError, OSError) as error:
        why = error.why if isinstance(error, DiapauseError) else (error.strerror or str(error)).lower()
        return f"restore it from the snapshot in {image}, which could not be kept ({why})"
    return f"restore it from the snapshot in {path}"
