"""diapause-local.json: what a local snapshot is, for whoever lists them. The image's manifest is what counts.

It is written last, so a directory without it is no local snapshot.
"""

from __future__ import annotations

from diapause.runtime import json
from diapause.runtime.errors import InvalidArgument
from diapause.runtime.linux.files import read_regular, write_atomic
from diapause.runtime.store import layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "diapause-local.json"
MAGIC = "diapause-local"
VERSION = 1
GPU_DATA = "gpu-data"  # the GPU data of an image that lies elsewhere
IMAGE = "image"  # a whole image directory, kept because nobody else would have
SUSPENDED = "suspended"  # the GPU data of a container that stands still: its only copy
KINDS = (GPU_DATA, IMAGE, SUSPENDED)

_LIMIT = 1 << 16  # bytes
_MAX_NUMBER = 1 << 62
_TEXTS = ("id", "created", "index", "image", "note")
_NUMBERS = ("bytes", "zero", "allocations")


class Entry:
    """What is said of a local snapshot."""

    __slots__ = ("allocations", "bytes", "created", "id", "image", "index", "kind", "note", "zero")

    def __init__(
        self, *, kind: str, id: str, created: str, index: str = "", bytes: int = 0, zero: int = 0,
        allocations: int = 0, image: str = "", note: str = "",
    ) -> None:  # fmt: skip
        self.kind = kind  # one of KINDS
        self.id = id  # of the container
        self.created = created  # "2026-01-02T03:04:05Z"
        self.index = index  # digest of the index of the GPU data, "" if there is none
        self.bytes = bytes  # of device memory
        self.zero = zero  # of them in blocks of zeros
        self.allocations = allocations
        self.image = image  # the image directory at that time; it may have been deleted since
        self.note = note  # why it is here, for people

    def fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("kind", *_TEXTS, *_NUMBERS)}


def write(directory: str, entry: Entry, *, sync: bool) -> None:
    document = {"magic": MAGIC, "version": VERSION, **entry.fields()}
    data = (json.dumps(document) + "\n").encode()
    write_atomic(f"{directory}/{NAME}", data, mode=layout.FILE_MODE, sync=sync)


def read(directory: str) -> Entry:
    """Raises FileNotFoundError for a directory without one, InvalidArgument (store-entry-malformed)."""
    where = f"local snapshot {directory}"
    try:
        raw = json.loads(read_regular(f"{directory}/{NAME}", limit=_LIMIT).decode())
    except FileNotFoundError:
        raise
    except (OSError, ValueError, RecursionError) as e:
        raise _malformed(where, getattr(e, "strerror", None) or str(e)) from None
    if not isinstance(raw, dict) or raw.get("magic") != MAGIC or raw.get("version") != VERSION:
        raise _malformed(where, f"no document {MAGIC!r} of version {VERSION}")
    good = (
        raw.get("kind") in KINDS
        and all(isinstance(raw.get(name), str) for name in _TEXTS)
        and all(_is_number(raw.get(name)) for name in _NUMBERS)
    )
    if not good:
        raise _malformed(where, "a field is missing or of another type")
    return Entry(**{name: raw[name] for name in ("kind", *_TEXTS, *_NUMBERS)})


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_NUMBER


def _malformed(where: str, why: str) -> InvalidArgument:
    return InvalidArgument(
        "store-entry-malformed", where, f"{NAME}: {why[:200]}".lower(),
        "remove it with `diapause snapshot rm`",
    )  # fmt: skip
