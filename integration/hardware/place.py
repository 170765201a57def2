"""Where things lie on the machine of a hardware run."""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from integration.harness.diapause import REAL_GPU, Settings
from integration.harness.tools import install


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for images: in memory on a machine with a real GPU, which has enough of it."""
    memory = "/dev/shm" if REAL_GPU and os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="dp-", dir=memory, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def libcuda(settings: Settings) -> str:
    """The libcuda of this machine that its containers are given, as a file of the host."""
    document = json.loads((settings.cdi / "gpu.json").read_text())
    edits = [document.get("containerEdits", {}), *(d["containerEdits"] for d in document["devices"])]
    mounts = [mount for edit in edits for mount in edit.get("mounts", [])]
    return next(str(m["hostPath"]) for m in mounts if "/libcuda.so" in m["containerPath"])


@cache
def native(*names: str) -> str:
    """A file of the installed package's C parts, say ("lib", "libdiapause-cuda.so")."""
    where = f"from diapause.runtime import native; print(native.require(*{names!r}))"
    python = install().bin / "python3"
    return subprocess.run(
        [python, "-I", "-c", where], capture_output=True, text=True, check=True, timeout=20
    ).stdout.strip()


def gpu_memory_used() -> int:
    """Bytes of the first GPU in use, as NVML says; -1 if it is not asked (no nvidia-smi)."""
    if not REAL_GPU:
        return -1
    argv = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return -1
    return int(done.stdout.split()[0]) << 20
