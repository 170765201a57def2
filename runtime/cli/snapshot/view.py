"""What `diapause snapshot show` tells of a snapshot, as plain values."""

from __future__ import annotations

import os

from diapause.runtime.errors import DiapauseError
from diapause.runtime.linux.files import read_regular
from diapause.runtime.store import digest, gpu_index, layout
from diapause.runtime.store.gpu_index import BLOCK, NOWHERE
from diapause.runtime.store.snapshot import Snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from diapause.runtime.cli.snapshot.target import Target
    from diapause.runtime.store.gpu_index import Allocation, Index
    from diapause.runtime.store.local import Local
    from diapause.runtime.store.manifest import Manifest

_FLAGS = {4: "imported", 8: "shared", 16: "slab", 32: "program"}  # of the control channel's MEMORY


def of(target: Target, local: Local) -> dict[str, Any]:
    """Everything about it; sizes in bytes. Raises what opening it does."""
    found = target.local
    if target.image or found is None:
        return of_image(target.image, local)
    known = found.entry
    index = _index(found.path)
    return {
        "path": found.path,
        "kind": known.kind if known else "",
        "container": known.id if known else "",
        "created": known.created if known else "",
        "image": known.image if known else "",
        "note": known.note if known else "",
        "gpu_data": {"placement": "local", "name": found.name, "host": os.uname().nodename, "here": True,
                     **_sums(index)},
        "processes": _processes(None, index),
        "allocations": _allocations(index),
        "bytes": _ways(None, index),
        "phases": [],
    }  # fmt: skip


def of_image(path: str, local: Local) -> dict[str, Any]:
    with Snapshot.open(path) as snapshot:
        document = snapshot.document
    raw, stated = document.raw, document.gpu_data
    index = _index(path, stated["index"]) if stated else None
    return {
        "path": path,
        "kind": "image",
        "container": raw["id"],
        "created": raw["created"],
        "engine": raw["engine"],
        "evacuated": raw["evacuated"],
        "software_gpu": raw["software"],
        "driver": raw["driver"],
        "library": document.library,
        "tools": raw["tools"],
        "flags": document.flags,
        "gpu_data": {**stated, "here": _is_here(stated, local)} if stated else None,
        "processes": _processes(document, index),
        "allocations": _allocations(index),
        "bytes": _ways(document, index),
        "phases": document.phases,
        "digest": raw["digest"],
    }


def _index(directory: str, expected: str = "") -> Index | None:
    """The index in a directory; None for a local snapshot without one (it is broken, or has no GPU data)."""
    try:
        data = read_regular(f"{directory}/{layout.GPU_INDEX}", limit=gpu_index.MAX_BYTES)
    except FileNotFoundError:
        return None
    if expected and digest.of_bytes(data) != expected:
        return None  # `verify` tells what is wrong
    return gpu_index.decode(data, f"snapshot {directory}")


def _is_here(stated: Any, local: Local) -> bool:
    if stated["placement"] != "local":
        return True
    try:
        local.open(stated["name"]).close()
    except (DiapauseError, OSError):
        return False
    return True


def _sums(index: Index | None) -> dict[str, int]:
    if index is None:
        return {"bytes": 0, "zero": 0, "allocations": 0}
    return {"bytes": index.bytes, "zero": index.zero, "allocations": len(index.allocations)}


def _processes(document: Manifest | None, index: Index | None) -> list[dict[str, Any]]:
    """Those that the manifest lists, else those that the index names."""
    memory: dict[int, list[int]] = {}
    for allocation in index.allocations if index else ():
        memory.setdefault(allocation.process, []).append(allocation.size)
    listed: list[dict[str, Any]]
    if document is None:
        listed = [{"pid": pid, "comm": "", "gpu": True, "stopped": False} for pid in sorted(memory)]
    else:
        listed = [
            {"pid": process.pid, "comm": process.comm, "gpu": process.gpu, "stopped": process.stopped}
            for process in document.processes
        ]
    for entry in listed:
        sizes = memory.get(entry["pid"], [])
        entry |= {"allocations": len(sizes), "gpu_bytes": sum(sizes)}
    return listed


def _allocations(index: Index | None) -> list[dict[str, Any]]:
    if index is None:
        return []
    return [_allocation(index, allocation) for allocation in index.allocations]


def _allocation(index: Index, allocation: Allocation) -> dict[str, Any]:
    kept = sum(1 for block in index.of(allocation) if block[0] != NOWHERE)
    return {
        "process": allocation.process,
        "id": allocation.id,
        "device": index.devices[allocation.device].hex(),
        "address": allocation.address,
        "size_bytes": allocation.size,
        "kept_bytes": min(kept * BLOCK, allocation.size),
        "kinds": [word for flag, word in _FLAGS.items() if allocation.flags & flag],
    }


def _ways(document: Manifest | None, index: Index | None) -> dict[str, int]:
    """How many bytes went which way: GPU memory that was copied, that was zeros, and what CRIU took."""
    sums = _sums(index)
    ways = {"gpu_copied": sums["bytes"] - sums["zero"], "gpu_zero": sums["zero"]}
    if document is None:
        return ways
    pages = [file.size for file in document.files if file.name.startswith(layout.PAGES_PREFIX)]
    data = [file.size for file in document.files if layout.gpu_number(file.name) is not None]
    evacuated = [phase["bytes"] for phase in document.phases if phase["name"] == "evacuate"]
    return {
        **ways,
        "gpu_by_driver": int(sum(evacuated)),  # lies in the memory of the processes, and so in criu_memory
        "criu_memory": sum(pages),
        "other_files": document.size - sum(pages) - sum(data),
        "all_files": document.size,
    }
