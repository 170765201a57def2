"""Programs of this host: where they are, which version, and since when a daemon runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

from diapause.runtime.errors import NotFound
from diapause.runtime.linux import pid

SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SECONDS = 20


def find(name: str) -> str:
    """In PATH, and where a distribution puts programs; "" if nowhere."""
    return shutil.which(name) or shutil.which(name, path=SYSTEM) or ""


def version(path: str) -> tuple[int, ...]:
    """The first number with dots that `path --version` prints, () if it prints none."""
    try:
        done = subprocess.run(
            [path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", timeout=SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return parse(done.stdout + done.stderr)


def parse(text: str) -> tuple[int, ...]:
    found = re.search(r"\d+(?:\.\d+)+", text)
    return tuple(map(int, found[0].split("."))) if found else ()


def shown(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


def of_this_package(name: str) -> str:
    """A program that lies beside this interpreter's scripts."""
    path = os.path.join(sys.prefix, "bin", name)
    if not os.access(path, os.X_OK):
        todo = "install the package again, or name the program with --runtime-path"
        raise NotFound("own-program-missing", name, f"{path} is not there", todo)
    return path


def daemons(name: str) -> list[tuple[int, float]]:
    """(pid, time it started at, seconds since the epoch) of the running processes of that name."""
    with open("/proc/stat", encoding="ascii") as file:
        boot = next(float(line.split()[1]) for line in file if line.startswith("btime "))
    tick = os.sysconf("SC_CLK_TCK")
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/comm", encoding="utf-8", errors="replace") as file:
                if file.read().strip() != name[:15]:
                    continue
            found.append((int(entry), boot + pid.start_time(int(entry)) / tick))
        except OSError:
            continue
    return found
