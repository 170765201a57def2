"""Containers whose root is this host's: /usr and /opt, with what is mounted below them, as recursive binds.

That is how a program of a machine without container images, PyTorch say, gets into a container.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from integration.harness.bundle import Bundle, Runtime
from integration.harness.diapause import REAL_GPU, Settings
from integration.harness.image import Layer
from integration.harness.tools import ROOT

PYTHONS = (os.environ.get("DIAPAUSE_TEST_PYTHON", ""), "/opt/torch/.venv/bin/python3", "/usr/bin/python3")
LINKS = ("bin", "sbin", "lib", "lib64", "lib32", "libx32")
PROGRAMS = "/programs"  # integration/workloads, in the container
LIBRARIES = f"/usr/lib/{os.uname().machine}-linux-gnu"  # where a container's libcuda is
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/cuda/bin",
    "HOME": "/tmp",
    "USER": "root",  # there is no /etc/passwd
    "TRITON_LIBCUDA_PATH": LIBRARIES,  # this host's ld.so.cache says nothing of libcuda
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",  # deterministic matrix products
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
    "TORCHINDUCTOR_CACHE_DIR": "/tmp/inductor",
    "TRITON_CACHE_DIR": "/tmp/triton",
    "OMP_NUM_THREADS": "2",
}


@dataclass(frozen=True, slots=True)
class Mount:
    source: str
    target: str
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HostRoot:
    """Made by `hostroot`; containers may be started while it is open."""

    usr: Path

    def mounts(self) -> list[Mount]:
        found = [Mount(str(self.usr), "/usr", ("rbind", "rw"))]
        if Path("/opt").is_dir():
            found.append(Mount("/opt", "/opt", ("rbind", "ro")))
        found.append(Mount("/etc/ld.so.cache", "/etc/ld.so.cache", ("bind", "ro")))
        found.append(Mount(str(ROOT / "integration/workloads"), PROGRAMS, ("bind", "ro")))
        return found

    def bundle(
        self, runtime: Runtime, *argv: str, engine: str, env: Mapping[str, str] | None = None
    ) -> Bundle:
        """A container on the low-level runtime, not yet started."""
        made = runtime.bundle(*argv, engine=engine, env={**ENVIRONMENT, **(env or {})}, layer=layer())
        self._targets(runtime.settings)
        process, mounts = made.spec["process"], made.spec["mounts"]
        assert isinstance(process, dict)
        assert isinstance(mounts, list)
        process["env"] = [word for word in process["env"] if not word.startswith("PATH=/bin:/opt")]
        made.spec["mounts"] = mounts + [
            {"destination": m.target, "type": "bind", "source": m.source, "options": list(m.options)}
            for m in self.mounts()
        ]
        made.write_spec()
        return made

    def _targets(self, settings: Settings) -> None:
        """Make the places for the driver's files: two containers that start at once would both want to."""
        document = json.loads((settings.cdi / "gpu.json").read_text())
        edits = [document.get("containerEdits", {}), *(d["containerEdits"] for d in document["devices"])]
        for mount in (mount for edit in edits for mount in edit.get("mounts", [])):
            path = Path(mount["containerPath"])
            if path.is_relative_to("/usr"):
                target = self.usr / path.relative_to("/usr")
                target.parent.mkdir(parents=True, exist_ok=True)
                if not os.path.lexists(target):
                    target.touch()

    def options(self) -> Sequence[str]:
        """For `ctr run`."""
        texts = [
            f"type=bind,src={m.source},dst={m.target},options={':'.join(m.options)}" for m in self.mounts()
        ]
        return [word for text in texts for word in ("--mount", text)]


def python() -> tuple[str, bool]:
    """An interpreter below /usr or /opt, and whether it has PyTorch with a GPU."""
    found = [p for p in PYTHONS if p and Path(p).exists()]
    for candidate in found if REAL_GPU or PYTHONS[0] else ():
        if _has_torch(candidate):
            return candidate, True
    return found[-1], False


@cache
def _has_torch(python: str) -> bool:
    argv = [python, "-c", "import torch"]
    return subprocess.run(argv, capture_output=True, timeout=90, check=False).returncode == 0


def layer() -> bytes:
    """The folders of this host's root, and its links into /usr; no programs."""
    made = Layer()
    for folder in ("dev", "etc", "opt", "out", "proc", "root", "run", "sys", "tmp", "usr", "var"):
        made.folder(folder, 0o1777 if folder == "tmp" else 0o755)
    made.folder(PROGRAMS.lstrip("/"))
    made.file("etc/ld.so.cache", b"", 0o644)
    for name in LINKS:
        if Path(f"/{name}").is_symlink():
            made.link(name, os.readlink(f"/{name}"))
    return made.bytes()


@contextmanager
def hostroot(folder: Path) -> Iterator[HostRoot]:
    """/usr as an overlay, so that mount targets can be made in it, with a mount below it."""
    usr, upper, work = (folder / name for name in ("usr", "upper", "work"))
    for path in (usr, upper, work):
        path.mkdir()
    options = f"lowerdir=/usr,upperdir={upper},workdir={work}"
    _mount("-t", "overlay", "-o", options, "overlay", str(usr))
    below = usr / "local/nvidia"  # where this host may have its driver: containers have what they are given
    try:
        below.mkdir(parents=True, exist_ok=True)
        _mount("-t", "tmpfs", "tmpfs", str(below))
        (below / "mark").write_text("a mount below /usr\n")
        yield HostRoot(usr)
    finally:
        subprocess.run(["umount", "-R", "-l", str(usr)], check=False, timeout=20)
        shutil.rmtree(upper, ignore_errors=True)


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, timeout=20)
