"""The process that makes a container: a verb of ours, which becomes runc under the same number.

Its mark in the container's directory tells two containers of one id apart: a second create finds that the
first is not through, and a late poststop of an old container leaves the directory of a new one alone
(runc forgets a container before it runs that hook, so the id is free meanwhile).
"""

from __future__ import annotations

import os

from diapause.runtime.errors import Unavailable
from diapause.runtime.linux import pid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.container import Container

LINK = "maker"  # in the container's directory, a link that leads nowhere: its target is the mark


def mark() -> str:
    """Of this process: "pid-start"."""
    return f"{os.getpid()}-{pid.start_time(os.getpid())}"


def claim(container: Container) -> None:
    """Leave our mark; the container's lock is held. Raises Unavailable while another process makes it."""
    from diapause.runtime.linux.files import replace_link

    path = f"{container.directory}/{LINK}"
    try:
        number, _, start = os.readlink(path).partition("-")
    except FileNotFoundError:
        number, start = "0", "0"
    if int(number) != os.getpid() and pid.is_alive(int(number), int(start)):
        why = f"process {number} is creating or restoring it"
        raise Unavailable(
            "container-busy", f"container {container.id}", why, "wait for it, or use another id"
        )
    replace_link(path, mark())
