"""The bundle's config.json, of which the engine reads what concerns a restore."""

from __future__ import annotations

from diapause.runtime import json
from diapause.runtime.linux.files import read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_LIMIT = 64 << 20  # bytes


def config(bundle: str) -> Mapping[str, Any]:
    """Raises OSError, or ValueError for what is no JSON. The verb has looked at its shape before."""
    data: dict[str, Any] = json.loads(read_regular(f"{bundle}/config.json", limit=_LIMIT).decode())
    return data
