"""Directories of containers that never came to be, or whose end nobody saw.

`poststop` removes a container's directory. It does not run where runc gives up a create early (1.1 after a
failed createRuntime hook), nor after a crash. The front starts Python for every verb while there is any
journal, so a leftover would also cost every container of the node that start.
"""

from __future__ import annotations

import os
import time

from diapause.runtime.container import run_dir

LINK = "runc"  # in the container's directory, to runc's own directory of that container
AGE = 600.0  # seconds: longer than any create takes between our edit and runc's directory


def sweep(*, age: float = AGE) -> None:
    """Remove what runc does not know, what no operation holds, and what is older than `age`."""
    directory = f"{run_dir()}/c"
    try:
        keys = os.listdir(directory)
    except OSError:
        return
    for key in keys:
        try:
            _sweep_one(f"{directory}/{key}", age)
        except OSError:
            pass  # another process swept it away


def _sweep_one(directory: str, age: float) -> None:
    if not _is_leftover(directory, age):
        return
    from diapause.runtime.linux.locks import Lock

    if (lock := Lock.try_take(f"{directory}/lock")) is not None:
        from shutil import rmtree

        with lock:
            if _is_leftover(directory, age):  # still: a new container may have taken its place meanwhile
                rmtree(directory)


def _is_leftover(directory: str, age: float) -> bool:
    link = f"{directory}/{LINK}"
    if os.path.exists(link):
        return False
    newest = link if os.path.islink(link) else directory  # every container makes its own link
    return time.time() - os.lstat(newest).st_mtime >= age


def link(directory: str, root: str, container_id: str) -> None:
    """Make the link that tells later whether runc knows the container."""
    from diapause.runtime.linux.files import replace_link

    replace_link(f"{directory}/{LINK}", os.path.join(root, container_id))
