"""Journals whose container is gone: nobody will ever call a verb for it, so nobody would replay them.

The front starts Python for every verb while there is any journal; one that stays would cost every container
of the node that start, for ever.
"""

from __future__ import annotations

import os

from diapause.runtime import json
from diapause.runtime.container import Container, run_dir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def sweep() -> None:
    """Forget the containers that have a journal, that runc does not know and that no operation holds."""
    from diapause.runtime.linux.locks import Lock

    for container in _with_journal():
        if os.path.exists(os.path.join(container.root, container.id)):
            continue
        if (lock := Lock.try_take(f"{container.directory}/lock")) is not None:
            with lock:
                container.forget()


def _with_journal() -> Iterator[Container]:
    directory = f"{run_dir()}/c"
    for key in os.listdir(directory) if os.path.isdir(directory) else []:
        if not os.path.exists(f"{directory}/{key}/journal"):
            continue
        try:
            with open(f"{directory}/{key}/state.json", encoding="utf-8") as file:
                state = json.loads(file.read())
            container = Container(state["root"], state["id"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if container.key == key:
            yield container
