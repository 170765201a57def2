"""What the createRuntime hook has to find: `expected` in the container's directory, which its C half reads.

    diapause-expected 1
    id c1
    bundle /run/…/c1
    file <device> <inode> <size> <mtime, ns> <ctime, ns> <path>
    major 195
    end

A file is one whose digest was compared with the recorded one and that has settled: with the same stamp it has
the same content, as oci/digest.py argues. Where a line cannot be written there is no such file, and the hook
looks more closely, in Python.
"""

from __future__ import annotations

import os

from diapause.runtime.oci import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "expected"
FORMAT = "diapause-expected 1"


def write(directory: str, state: dict[str, Any]) -> None:
    """Write it anew from `state`, or take an old one away. Raises OSError."""
    from diapause.runtime.linux.files import write_atomic

    path = f"{directory}/{NAME}"
    if text := _text(state):
        write_atomic(path, text.encode(errors="surrogateescape"), sync=False)
        return
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def _text(state: dict[str, Any]) -> str:
    """ "" where something has to be looked at more closely."""
    lines = [FORMAT, f"id {state['id']}", f"bundle {state['bundle']}"]
    for file in (state["driver"]["libcuda"], state.get("library")):
        if file is not None:
            if not (stamp := digest.stamp_of(file["path"], file["digest"])):
                return ""
            lines.append(f"file {stamp} {file['path']}")
    lines += [f"major {major}" for major in sorted({device["major"] for device in state["devices"]} - {0})]
    lines.append("end\n")
    return "" if any("\n" in line for line in lines[:-1]) else "\n".join(lines)
