"""The programs that run inside the containers, and the layer that holds them."""

import os
import platform
import subprocess
import sys
from functools import cache
from pathlib import Path

from integration.harness import image
from integration.harness.tools import ROOT, Toolset

# Each checks its own values every step, and prints BAD when one is wrong.
CPU = ("/opt/cpu", "--interval", "20")
COUNTER = ("/opt/counter", "--interval", "20")
GPU = {
    "counter": COUNTER,
    "polling events": ("/opt/poller", "--mode", "event"),
    "polling streams": ("/opt/poller", "--mode", "stream"),
    "polling the context": ("/opt/poller", "--mode", "sync"),
    "many allocations": ("/opt/many", "--interval", "20"),
    "pinned memory": ("/opt/pinned", "--interval", "20"),
    "two processes": ("/opt/twoproc", "--interval", "20"),
    "64 threads": ("/opt/threads", "--interval", "20", "--threads", "64"),
    "allocating all the time": ("/opt/churn", "--interval", "20"),
    "a capture in progress": ("/opt/capture", "--interval", "20"),
    "memory mapped by hand": ("/opt/vmm", "--interval", "20"),
    "host functions": ("/opt/callbacks", "--interval", "20"),
}
FORKED = ("/opt/forked", "--interval", "20")  # only our library lets go of what the child inherits
MANAGED = ("/opt/managed", "--interval", "20")


@cache
def folder() -> Path:
    """Where the workloads are: DIAPAUSE_WORKLOADS, else built into build/workloads of this tree."""
    chosen = os.environ.get("DIAPAUSE_WORKLOADS")
    if chosen:
        return Path(chosen)
    build = ROOT / "build/workloads"
    argv = [
        "make", "-C", "native", f"OUT={build}", f"O={ROOT}/build/obj/{platform.machine()}",
        f"WORKLOADS={build}",
        f"ZIG={sys.executable} -m ziglang", "workloads",
    ]  # fmt: skip
    subprocess.run(argv, cwd=ROOT, check=True, timeout=600, stdout=subprocess.DEVNULL)
    return build


@cache
def layer(tools: Toolset) -> bytes:
    """The layer that every test container has; busybox is the tool set's."""
    programs = {p.name: p for p in sorted(folder().iterdir()) if p.is_file() and os.access(p, os.X_OK)}
    return image.workload_layer(tools.find("busybox"), programs)
