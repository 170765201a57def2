"""What /proc tells about processes. Everything may vanish between two reads."""

from __future__ import annotations

import os
import stat

from diapause.runtime.linux import pid as named

is_alive = named.is_alive
start_time = named.start_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class Fd:
    """An open file of a process."""

    __slots__ = ("device", "number", "target")

    def __init__(self, number: int, target: str, device: int) -> None:
        self.number = number
        self.target = target  # what the link reads
        self.device = device  # st_rdev of a character device, else 0


def threads(pid: int) -> list[int]:
    """The thread ids, [] when the process is gone."""
    try:
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    except (FileNotFoundError, ProcessLookupError):
        return []


def run_state(pid: int) -> str:
    """The letter of the main thread's state: R, S, D, T (stopped), t (traced), Z (zombie)."""
    return named.stat_fields(pid)[0]


def group_stopped(pid: int) -> bool:
    """Whether a signal has stopped the process, as far as can be seen.

    Version 1 of the freezer hides the state; what the thread waits in still tells.
    """
    try:
        if run_state(pid) == "T":
            return True
        with open(f"/proc/{pid}/wchan", encoding="ascii", errors="replace") as file:
            return file.read() == "do_signal_stop"
    except OSError:
        return False


def comm(pid: int) -> str:
    with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
        return file.read().rstrip("\n")


def status_field(path: str, name: str) -> str:
    """A field of a status file ("/proc/1/status", "/proc/1/task/2/status"), "" if it is not there."""
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            key, _, value = line.partition(":")
            if key == name:
                return value.strip()
    return ""


def namespaced_pids(pid: int) -> list[int]:
    """The pid in every pid namespace, from this one inwards."""
    return [int(number) for number in status_field(f"/proc/{pid}/status", "NSpid").split()]


def tracer(pid: int, tid: int) -> int:
    """The pid of the thread's tracer, 0 if it has none."""
    return int(status_field(f"/proc/{pid}/task/{tid}/status", "TracerPid") or 0)


def traced(pid: int) -> bool:
    """Whether the main thread has a tracer; not when the process is gone."""
    try:
        return tracer(pid, pid) != 0
    except OSError:
        return False


def fds(pid: int) -> Iterator[Fd]:
    """The open files of a process; those that vanish meanwhile are left out."""
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, ProcessLookupError):
        return
    for name in names:
        path = f"{folder}/{name}"
        try:
            target = os.readlink(path)
            device = 0
            if target.startswith("/") and not target.startswith("/memfd:"):
                found = os.stat(path)
                device = found.st_rdev if stat.S_ISCHR(found.st_mode) else 0
        except OSError:
            continue
        yield Fd(int(name), target, device)


def character_majors(prefix: str) -> set[int]:
    """The majors of the character drivers whose name in /proc/devices starts with `prefix`."""
    majors: set[int] = set()
    with open("/proc/devices", encoding="ascii") as file:
        for line in file:
            if line.startswith("Block"):
                break
            words = line.split()
            if len(words) == 2 and words[1].startswith(prefix):
                majors.add(int(words[0]))
    return majors


def executable_mappings(pid: int, prefixes: tuple[str, ...]) -> list[tuple[int, int]]:
    """Where code of files lies whose names begin with one of `prefixes`: [(first, behind the last))."""
    found = []
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as file:
        for line in file:
            words = line.split(maxsplit=5)
            if len(words) < 6 or "x" not in words[1]:
                continue
            if os.path.basename(words[5].rstrip("\n")).startswith(prefixes):
                low, _, high = words[0].partition("-")
                found.append((int(low, 16), int(high, 16)))
    return found
