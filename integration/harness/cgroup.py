"""The freezer of a container, cgroup v1 and v2, from outside."""

import re
from pathlib import Path

from integration.harness import proc


def _paths(pid: int) -> dict[str, str]:
    """Controller → path; the v2 entry has the key ""."""
    table = {}
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            table[controller] = path
    return table


def frozen(pid: int) -> bool:
    """Whether the cgroup of a process is frozen (or on its way there)."""
    paths = _paths(pid)
    v1 = Path(f"/sys/fs/cgroup/freezer{paths.get('freezer', '/')}/freezer.state")
    if "freezer" in paths and v1.exists() and v1.read_text().strip() != "THAWED":
        return True
    for mount in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup"):
        events = Path(f"{mount}{paths.get('', '/')}/cgroup.events")
        if events.exists():
            return re.search(r"^frozen 1", events.read_text(), re.M) is not None
    return False


def members(pid: int) -> list[int]:
    """All processes in the cgroup of `pid` (its freezer's, or the v2 one)."""
    paths = _paths(pid)
    wanted = paths.get("freezer", paths.get(""))
    found = []
    for other in proc.pids():
        try:
            theirs = _paths(other)
        except OSError:
            continue
        if theirs.get("freezer", theirs.get("")) == wanted:
            found.append(other)
    return found
