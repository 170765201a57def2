"""Where the GPU data of a snapshot goes: into the image directory, or into this machine's local store."""

from __future__ import annotations

from diapause.runtime.store import layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Settings(Protocol):
        """The keys of [snapshot] that decide it."""

        placement: str
        embed_limit: int
        memory_dir: str


EMBEDDED = "embedded"
LOCAL = "local"


def place(bytes: int, settings: Settings, image_path: str) -> str:
    """EMBEDDED or LOCAL, for that many bytes of GPU memory.

    A client packs a temporary directory of its own while the container stands still, at a few hundred MB/s:
    what is large had better not lie there. A directory that stays is as good a place as the store on disk.
    """
    if settings.placement != "auto":
        return settings.placement
    if bytes <= settings.embed_limit:
        return EMBEDDED
    return LOCAL if layout.is_temporary(image_path) or settings.memory_dir else EMBEDDED
