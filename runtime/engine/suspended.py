"""What is known of a suspended container: its GPU memory lies in the store, its processes stand still."""

from __future__ import annotations

import os

from diapause.runtime import json
from diapause.runtime.errors import FailedPrecondition
from diapause.runtime.linux.files import write_atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from diapause.runtime.container import Container

NAME = "suspended"  # in the container's directory; the C front looks for it


def exists(container: Container) -> bool:
    return os.path.exists(_path(container))


def store_name(container: Container) -> str:
    """What its GPU memory is called in the local store."""
    return f"suspended-{container.key}"


def write(container: Container, facts: Mapping[str, Any]) -> None:
    write_atomic(_path(container), json.dumps(dict(facts)).encode(), sync=False)  # dies with the processes


def read(container: Container) -> dict[str, Any] | None:
    """What write() wrote; None for a container that is not suspended."""
    try:
        with open(_path(container), encoding="utf-8") as file:
            facts: dict[str, Any] = json.loads(file.read())
    except FileNotFoundError:
        return None
    return facts


def remove(container: Container) -> None:
    try:
        os.unlink(_path(container))
    except FileNotFoundError:
        pass


def refuse(container: Container, what: str) -> None:
    """Raises FailedPrecondition for a container that is suspended."""
    if exists(container):
        why, todo = "the container is suspended", "resume it first"
        raise FailedPrecondition("container-suspended", what, why, todo)


def _path(container: Container) -> str:
    return f"{container.directory}/{NAME}"
