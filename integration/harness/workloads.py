"""The programs that run inside the containers, and the layer that holds them."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

from integration.harness import image
from integration.harness.tools import ROOT, Toolset


@cache
def folder() -> Path:
    """Where the workloads are built: DIAPAUSE_WORKLOADS, else build/workloads of this tree."""
    return Path(os.environ.get("DIAPAUSE_WORKLOADS") or ROOT / "build/workloads")


@cache
def layer(tools: Toolset) -> bytes:
    """The layer that every test container has; busybox is the tool set's."""
    programs = {p.name: p for p in sorted(folder().iterdir()) if p.is_file() and os.access(p, os.X_OK)}
    return image.workload_layer(tools.find("busybox"), {**programs, "count": counter()})


@cache
def counter() -> Path:
    """A static program without any GPU: prints "step N" every 20 ms."""
    target = ROOT / "build/count"
    source = Path(__file__).parent / "count.c"
    if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
        target.parent.mkdir(exist_ok=True)
        subprocess.run(
            [
                sys.executable,
                "-m",
                "ziglang",
                "cc",
                "-target",
                "x86_64-linux-musl",
                "-static",
                "-O2",
                "-o",
                str(target),
                str(source),
            ],
            check=True,
            timeout=120,
        )
    return target
