"""What a word on the command line names: an image directory, or a snapshot in the local store."""

from __future__ import annotations

import os

from diapause.runtime import config
from diapause.runtime.errors import InvalidArgument, NotFound
from diapause.runtime.store import entry, layout
from diapause.runtime.store.local import Local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.store.local import Found


class _Settings:
    """The keys that the local store wants, from the configuration."""

    def __init__(self, values: config.Config) -> None:
        self.store_dir = values.snapshot_store_dir
        self.memory_dir = values.snapshot_memory_dir
        self.store_limit = values.snapshot_store_limit


def store() -> Local:
    """The local store of this machine."""
    return Local.of(_Settings(config.load()))


class Target:
    """Either `image` or `local` is set. A whole image that the store keeps has both."""

    __slots__ = ("image", "local", "word")

    def __init__(self, word: str, *, image: str = "", local: Found | None = None) -> None:
        self.word = word
        self.image = image  # absolute path of an image directory
        self.local = local


def find(word: str, local: Local) -> Target:
    """A word with a slash is a path, and so is one that names a directory here with a manifest in it.

    Raises NotFound (snapshot-unknown), InvalidArgument (snapshot-not-finished) for a draft.
    """
    path = os.path.abspath(word)
    if "/" in word or os.path.lexists(f"{path}/{layout.MANIFEST}"):
        return Target(word, image=path)
    for found in local.all():
        if found.name == word:
            if os.path.basename(found.path) != found.name:
                raise InvalidArgument(
                    "snapshot-not-finished", f"local snapshot {word}", found.fault,
                    "wait for it, or remove what was cut off with `diapause snapshot prune`",
                )  # fmt: skip
            whole = found.entry is not None and found.entry.kind == entry.IMAGE
            return Target(word, image=found.path if whole else "", local=found)
    raise NotFound(
        "snapshot-unknown", f"snapshot {word}", "no image directory and no local snapshot has that name",
        "see `diapause snapshot list`, or name the directory",
    )  # fmt: skip
