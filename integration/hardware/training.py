"""A PyTorch training of 4 GB that nobody stops: saved, restored, and three equal final losses."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from integration.hardware.options import Options
from integration.harness import hostroot
from integration.harness.container import Container
from integration.harness.diapause import REAL_GPU
from integration.harness.node import Node
from integration.harness.tools import toolset

IMAGE = "docker.io/library/host:latest"
STEPS = 400 if REAL_GPU else 300
T = TypeVar("T")


def run(out: Path, options: Options) -> dict[str, object]:
    """Options: `engine`."""
    node = Node(toolset("current"))
    with tempfile.TemporaryDirectory(prefix="dp-") as folder, hostroot.hostroot(Path(folder)) as root:
        try:
            node.start()
            node.load(IMAGE, hostroot.layer())
            return _compare(node, root, options.text("engine", "driver"))
        finally:
            node.close()


def _compare(node: Node, root: hostroot.HostRoot, engine: str) -> dict[str, object]:
    times: dict[str, float] = {}
    undisturbed = start(node, root, engine)
    saved = start(node, root, engine)
    saved.output.wait_line(r"^ready", seconds=80)
    saved.output.wait_step(STEPS // 4, seconds=60)
    image = timed(times, "ctr_checkpoint_s", lambda: saved.checkpoint(seconds=120))
    finals = {
        "undisturbed": undisturbed.output.wait_line(r"^final loss", seconds=100),
        "saved": saved.output.wait_line(r"^final loss", seconds=60),
    }
    saved.remove()  # a restored copy has the same cgroup
    restored = timed(times, "ctr_restore_s", lambda: node.restore(image, seconds=120))
    finals["restored"] = restored.output.wait_line(r"^final loss", seconds=80)
    return {
        "ok": len(set(finals.values())) == 1,
        "finals": finals,
        "steps": STEPS,
        "engine": engine,
        "first_line": restored.output.lines()[0],
        "image": node.ctr("i", "ls", f"name=={image}").splitlines()[-1],
        **times,
    }


def timed(times: dict[str, float], name: str, call: Callable[[], T]) -> T:
    start = time.monotonic()
    result = call()
    times[name] = round(time.monotonic() - start, 3)
    return result


def start(node: Node, root: hostroot.HostRoot, engine: str) -> Container:
    python, torch = hostroot.python()
    arguments = ["--steps", str(STEPS), *([] if torch else ["--without-torch"])]
    program = f"{hostroot.PROGRAMS}/training.py"
    return node.run(
        python, program, *arguments,
        image=IMAGE, engine=engine, options=root.options(), env=hostroot.ENVIRONMENT,
    )  # fmt: skip
