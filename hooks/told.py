"""What runc tells a hook on stdin: the container's state. Read as if anybody had written it."""

from __future__ import annotations

from diapause.runtime import json
from diapause.runtime.errors import InvalidArgument

HOOK = "diapause-hook register"
BY_HAND = "it is started by runc, not by hand"


class Told:
    __slots__ = ("bundle", "id", "pid")

    def __init__(self, container_id: str, bundle: str, pid: int) -> None:
        self.id = container_id
        self.bundle = bundle
        self.pid = pid  # of the container's init, on the host


def parse(stdin: bytes) -> Told:
    """Raises InvalidArgument."""
    try:
        state = json.loads(stdin.decode())
        container_id, bundle, pid = state["id"], state["bundle"], state["pid"]
    except (ValueError, TypeError, KeyError, RecursionError):
        why = "stdin is not the state of a container (JSON with id, bundle and pid)"
        raise InvalidArgument("hook-bad-state", HOOK, why, BY_HAND) from None
    if not isinstance(container_id, str) or not isinstance(bundle, str):
        raise InvalidArgument("hook-bad-state", HOOK, "id or bundle on stdin is no text", BY_HAND)
    if not isinstance(pid, int) or pid <= 1:
        raise InvalidArgument("hook-bad-state", HOOK, f"{pid!r} is no pid of a container's init", BY_HAND)
    return Told(container_id, bundle, pid)
