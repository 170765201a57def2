"""Rounds of checkpoint, remove and restore through containerd: nothing may grow."""

import os
import sys
from pathlib import Path

from integration.harness import proc
from integration.harness.container import Container
from integration.harness.node import Node
from integration.harness.tools import toolset
from integration.harness.workloads import COUNTER

WARM = 3  # rounds before the first look: caches fill, residue appears
TOLERANCE = 1.10  # of memory, which allocators do not give back to the page, and of text with pids in it


def size(folder: Path) -> int:
    """Bytes of all regular files below a folder."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            file = Path(path) / name
            if not file.is_symlink() and file.exists():
                total += file.stat().st_size
    return total


def look(node: Node, container: Container) -> dict[str, int]:
    """Everything that could grow, as numbers."""
    pid = container.pid()
    shims = node.daemon.shims()
    footprint = node.footprint()
    logs = node.settings.base / "lib/logs"
    return {
        "descriptors of the container": sum(len(proc.fds(p)) for p in container.processes()),
        "threads of the container": sum(len(proc.threads(p)) for p in container.processes()),
        "mappings of the container": len(Path(f"/proc/{pid}/maps").read_text().splitlines()),
        "mounts of the container": len(proc.mounts(pid)),
        "mounts of the host": len(footprint["mounts"]),
        "processes of the host": len(footprint["processes"]) + len(shims),
        "registered containers": len(footprint["registered"]),
        "temporary files": len(footprint["temporary"]),
        "directories of runc": len(footprint["runc"]),
        "directories of logs": len(list(logs.iterdir())) if logs.exists() else 0,
        "memory of the container": sum(proc.memory(p) for p in container.processes()),
        "memory of containerd": proc.memory(node.daemon.pid),
        "bytes in the state directory": size(node.settings.base / "lib"),
        "bytes in the run directory": size(node.settings.run_dir),
    }


def run(rounds: int) -> dict[str, object]:
    node = Node(toolset("current")).start()
    try:
        container = node.run(*COUNTER)
        container.output.wait_step(3)
        name = container.id
        first: dict[str, int] = {}
        for number in range(1, rounds + 1):
            image = container.checkpoint()
            container.goes_on()
            container.remove()
            node.sweep()
            container = node.restore(image, name)
            container.goes_on()
            node.forget(image)
            if number == WARM:
                first = look(node, container)
            if number % 10 == 0:
                print(f"  round {number}: step {container.output.step()}", file=sys.stderr, flush=True)
        last = look(node, container)
        return {"rounds": rounds, "first": first, "last": last, "grown": grown(first, last)}
    finally:
        node.close()


def grown(first: dict[str, int], last: dict[str, int]) -> list[str]:
    found = []
    for name, before in first.items():
        limit = before * TOLERANCE if name.startswith(("memory", "bytes")) else before
        if last[name] > limit:
            found.append(f"{name}: {before} became {last[name]}")
    return found
