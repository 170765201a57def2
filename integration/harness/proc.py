"""What the kernel says about processes, read from /proc."""

import os
import re
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

# What a driver closes at its checkpoint and opens in another order, under other numbers, at its restore.
DRIVERS_OWN = ("/dev/nvidia", "anon_inode:[eventfd]")


def pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _read(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes().decode(errors="replace")
    except OSError:  # it went away
        return ""


def cmdline(pid: int) -> str:
    return _read(pid, "cmdline").replace("\0", " ").strip()


def comm(pid: int) -> str:
    return _read(pid, "comm").strip()


def state(pid: int) -> str:
    """One letter as in ps, or an empty string when the process is gone."""
    found = re.search(r"^State:\s+(\S)", _read(pid, "status"), re.M)
    return found[1] if found else ""


def alive(pid: int) -> bool:
    return state(pid) not in ("", "Z", "X")


def tracer(pid: int) -> int:
    found = re.search(r"^TracerPid:\s+(\d+)", _read(pid, "status"), re.M)
    return int(found[1]) if found else 0


def parents() -> dict[int, int]:
    table = {}
    for pid in pids():
        stat = _read(pid, "stat")
        if stat:
            table[pid] = int(stat.rpartition(")")[2].split()[1])
    return table


def descendants(pid: int) -> list[int]:
    table = parents()
    found: list[int] = []
    wanted = {pid}
    while wanted:
        wanted = {child for child, parent in table.items() if parent in wanted and child not in found}
        found.extend(sorted(wanted))
    return found


def kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def threads(pid: int) -> list[int]:
    try:
        return sorted(int(t) for t in os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return []


def fds(pid: int) -> dict[int, str]:
    """Every descriptor and what it is; numbers that the kernel makes up anew are left out."""
    table = {}
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue
        if not target.startswith(DRIVERS_OWN):
            table[int(name)] = re.sub(r":\[\d+\]$", "", target)
    return table


# Shared anonymous memory under both its names: CRIU restores it as a memfd of the name that the kernel gave
# it, the same pages of the same kind of file, for the same processes. It is the memory of the software GPU,
# which comes and goes while a workload runs; what is in it the workload checks itself.
SHARED_ANONYMOUS = ("/dev/zero (deleted)", "memfd:/dev/zero")


def maps(pid: int) -> list[str]:
    """The named mappings, as "name permissions bytes", without what the kernel places by itself.

    Those of one name and one permission are taken together: neighbours that were split by mprotect before
    a dump may be one mapping after the restore.
    """
    sizes: Counter[str] = Counter()
    for line in _read(pid, "maps").splitlines():
        span, permissions, _, _, _, *name = line.split(maxsplit=5)
        if not name or name[0].startswith("[v"):
            continue
        start, end = (int(x, 16) for x in span.split("-"))
        label = re.sub(r"/memfd:(\S+).*", r"memfd:\1", name[0])
        if label.startswith(DRIVERS_OWN):
            continue
        if label not in ("[heap]", "[stack]", *SHARED_ANONYMOUS):
            sizes[f"{label} {permissions}"] += end - start
    return sorted(f"{label} {size:#x}" for label, size in sizes.items())


def mounts(pid: int) -> list[str]:
    """The mounts the process sees: "target ro|rw", sorted.

    Not their types: runc masks files in /proc with the host's /dev/null at create and with the container's
    own at restore, also without us.
    """
    found = []
    for line in _read(pid, "mountinfo").splitlines():
        fields = line.split()
        found.append(f"{fields[4]} {fields[5].split(',')[0]}")
    return sorted(found)


def mounts_below(folder: Path) -> list[str]:
    """The mount targets of this mount namespace at or below a folder."""
    targets = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [t for t in targets if t == str(folder) or t.startswith(f"{folder}/")]


def unmount_below(folder: Path) -> None:
    """Detach every mount at or below a folder, the innermost first."""
    for target in sorted(mounts_below(folder), reverse=True):
        subprocess.run(["umount", "-l", target], check=False, capture_output=True, timeout=20)


@dataclass(frozen=True, slots=True)
class View:
    """A process seen from outside: what has to be equal before a dump and after a restore."""

    fds: dict[int, str]
    maps: list[str]
    mounts: list[str]
    threads: int

    def changes(self, later: "View") -> list[str]:
        """What a later view has more (+) or less (-)."""
        found = [f"-fd {n} {self.fds[n]}" for n in self.fds if later.fds.get(n) != self.fds[n]]
        found += [f"+fd {n} {later.fds[n]}" for n in later.fds if self.fds.get(n) != later.fds[n]]
        for mine, theirs in ((self.maps, later.maps), (self.mounts, later.mounts)):
            before, after = Counter(mine), Counter(theirs)
            found += [f"-{text}" for text in (before - after).elements()]
            found += [f"+{text}" for text in (after - before).elements()]
        if self.threads != later.threads:
            found.append(f"{self.threads} threads became {later.threads}")
        return found

    @classmethod
    def of(cls, pid: int) -> "View":
        return cls(fds=fds(pid), maps=maps(pid), mounts=mounts(pid), threads=len(threads(pid)))


def memory(pid: int) -> int:
    """Resident bytes."""
    found = re.search(r"^VmRSS:\s+(\d+) kB", _read(pid, "status"), re.M)
    return int(found[1]) * 1024 if found else 0


def has_capability(number: int) -> bool:
    """Whether this process has it, as far as that is effective."""
    found = re.search(r"^CapEff:\s+([0-9a-f]+)", _read(os.getpid(), "status"), re.M)
    return bool(found and int(found[1], 16) >> number & 1)
