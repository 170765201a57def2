"""Messages between a controller and its clients: one JSON object and its file descriptors each.

A SOCK_SEQPACKET socket keeps their boundaries. {"v": 1, "seq": n, "op": "hello", …} is answered by
{"v": 1, "seq": n, …}, or {"v": 1, "seq": n, "error": {…}}. Neither side believes the other.
"""

from __future__ import annotations

import array
import os
import socket

from diapause.runtime import errors, json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

VERSION = 1
LIMIT = 65536  # bytes of a message
FDS = 128  # that may travel with one; the kernel takes up to 253
BATCH = 100  # allocations in one message: with 64-bit numbers in every field it stays far below LIMIT

_KINDS = {
    kind.__name__: kind
    for kind in (
        errors.NotFound, errors.AlreadyExists, errors.InvalidArgument, errors.FailedPrecondition,
        errors.Unavailable, errors.Internal,
    )
}  # fmt: skip


class WireError(ValueError):
    """What came is no message."""


def send(to: socket.socket, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
    """Send one message. Raises OSError, WireError for one that is too long."""
    data = json.dumps({"v": VERSION, **message}).encode()
    if len(data) > LIMIT or len(fds) > FDS:
        raise WireError(f"a message of {len(data)} bytes and {len(fds)} file descriptors")
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    to.sendmsg([data], rights, socket.MSG_NOSIGNAL)


def receive(end: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """The next message and its fds, which the caller owns; None when the other side has closed.

    Raises WireError, with every fd closed, OSError and TimeoutError.
    """
    data, ancillary, flags, _ = end.recvmsg(LIMIT, socket.CMSG_SPACE(FDS * 4), socket.MSG_CMSG_CLOEXEC)
    fds = _fds(ancillary)
    try:
        if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
            raise WireError("a message that is too long")
        if not data and not fds:
            return None
        return _decode(data), fds
    except WireError:
        close_all(fds)
        raise


def _fds(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    found = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            found.frombytes(data[: len(data) // found.itemsize * found.itemsize])
    return list(found)


def _decode(data: bytes) -> dict[str, Any]:
    try:
        message = json.loads(data.decode())
    except (ValueError, RecursionError) as e:
        raise WireError(f"no JSON: {e}") from None
    if not isinstance(message, dict):
        raise WireError("no JSON object")
    version = message.pop("v", None)
    if type(version) is not int or version != VERSION:
        raise WireError(f"version {str(version)[:20]}, this one speaks {VERSION}")
    return message


def close_all(fds: Sequence[int]) -> None:
    for fd in fds:
        os.close(fd)


def error_value(error: errors.DiapauseError) -> dict[str, str]:
    """An error as it travels."""
    return {
        "kind": type(error).__name__, "code": error.code, "what": error.what[:1000],
        "why": error.why[:4000], "todo": error.todo[:1000],
    }  # fmt: skip


def error_from(value: Any) -> errors.DiapauseError:
    """The error that travelled; of an unknown kind it is Internal. Raises WireError."""
    parts = ("code", "what", "why", "todo")
    if not isinstance(value, dict) or not all(isinstance(value.get(part), str) for part in parts):
        raise WireError("an error without its parts")
    kind = _KINDS.get(str(value.get("kind")), errors.Internal)
    return kind(*(value[part] for part in parts))
