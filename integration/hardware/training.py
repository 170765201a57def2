"""A PyTorch training of 4 GB that nobody stops: saved while it runs, restored, and three equal final losses.

The container's root is this host's: /usr and /opt with what is mounted below them, as recursive binds.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from integration.harness.container import Container
from integration.harness.diapause import REAL_GPU
from integration.harness.image import Layer
from integration.harness.node import Node
from integration.harness.tools import ROOT, toolset

IMAGE = "docker.io/library/host:latest"
PYTHONS = (os.environ.get("DIAPAUSE_TEST_PYTHON", ""), "/opt/torch/.venv/bin/python3", "/usr/bin/python3")
STEPS = 400 if REAL_GPU else 300
T = TypeVar("T")
LINKS = ("bin", "sbin", "lib", "lib64", "lib32", "libx32")


def run(out: Path) -> dict[str, object]:
    node = Node(toolset("current"))
    with tempfile.TemporaryDirectory(prefix="dp-") as folder, _usr(Path(folder)) as usr:
        try:
            node.start()
            node.load(IMAGE, _layer())
            return _compare(node, usr, out)
        finally:
            node.close()


def _compare(node: Node, usr: Path, out: Path) -> dict[str, object]:
    times: dict[str, float] = {}
    undisturbed = _start(node, usr)
    saved = _start(node, usr)
    saved.output.wait_line(r"^ready", seconds=80)
    saved.output.wait_step(STEPS // 4, seconds=60)
    image = _timed(times, "ctr_checkpoint_s", lambda: saved.checkpoint(seconds=120))
    finals = {
        "undisturbed": undisturbed.output.wait_line(r"^final loss", seconds=100),
        "saved": saved.output.wait_line(r"^final loss", seconds=60),
    }
    saved.remove()  # a restored copy has the same cgroup
    restored = _timed(times, "ctr_restore_s", lambda: node.restore(image, seconds=120))
    finals["restored"] = restored.output.wait_line(r"^final loss", seconds=80)
    (out / "training.txt").write_text(restored.output.text())
    return {
        "ok": len(set(finals.values())) == 1,
        "finals": finals,
        "steps": STEPS,
        "first_line": restored.output.lines()[0],
        "image": node.ctr("i", "ls", f"name=={image}").splitlines()[-1],
        **times,
    }


def _timed(times: dict[str, float], name: str, call: Callable[[], T]) -> T:
    start = time.monotonic()
    result = call()
    times[name] = round(time.monotonic() - start, 3)
    return result


def _start(node: Node, usr: Path) -> Container:
    mounts = [f"type=bind,src={usr},dst=/usr,options=rbind:rw"]
    mounts += [
        f"type=bind,src={path},dst={path},options=rbind:ro" for path in ("/opt",) if Path(path).is_dir()
    ]
    mounts += [f"type=bind,src={path},dst={path},options=bind:ro" for path in ("/etc/ld.so.cache",)]
    script = str(ROOT / "integration/workloads/training.py")
    mounts.append(f"type=bind,src={script},dst=/training.py,options=bind:ro")
    options = [word for mount in mounts for word in ("--mount", mount)]
    python, torch = _python()
    env = {
        "PATH": "/usr/bin:/bin",
        "HOME": "/tmp",
        "USER": "root",  # there is no /etc/passwd
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    arguments = ["--steps", str(STEPS), *([] if torch else ["--without-torch"])]
    return node.run(python, "/training.py", *arguments, image=IMAGE, options=options, env=env)


def _python() -> tuple[str, bool]:
    """An interpreter below /usr or /opt, and whether it has PyTorch."""
    found = [p for p in PYTHONS if p and Path(p).exists()]
    for python in found if REAL_GPU else ():
        if (
            subprocess.run(
                [python, "-c", "import torch"], capture_output=True, timeout=60, check=False
            ).returncode
            == 0
        ):
            return python, True
    return found[-1], False


def _layer() -> bytes:
    """The folders of this host's root, and its links into /usr; no programs."""
    layer = Layer()
    for folder in ("dev", "etc", "opt", "out", "proc", "root", "run", "sys", "tmp", "usr", "var"):
        layer.folder(folder, 0o1777 if folder == "tmp" else 0o755)
    layer.file("training.py", b"", 0o644)
    layer.file("etc/ld.so.cache", b"", 0o644)
    for name in LINKS:
        if Path(f"/{name}").is_symlink():
            layer.link(name, os.readlink(f"/{name}"))
    return layer.bytes()


@contextmanager
def _usr(folder: Path) -> Iterator[Path]:
    """/usr as an overlay, so that mount targets can be made in it, with a mount below it."""
    usr, upper, work = (folder / name for name in ("usr", "upper", "work"))
    for path in (usr, upper, work):
        path.mkdir()
    options = f"lowerdir=/usr,upperdir={upper},workdir={work}"
    _mount("-t", "overlay", "-o", options, "overlay", str(usr))
    below = usr / "local/nvidia"
    try:
        below.mkdir(parents=True, exist_ok=True)
        if Path("/usr/local/nvidia").is_dir():
            _mount("--rbind", "/usr/local/nvidia", str(below))
        else:
            _mount("-t", "tmpfs", "tmpfs", str(below))
            (below / "mark").write_text("a mount below /usr\n")
        yield usr
    finally:
        subprocess.run(["umount", "-R", "-l", str(usr)], check=False, timeout=20)
        shutil.rmtree(upper, ignore_errors=True)


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, timeout=20)
