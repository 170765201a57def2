"""The phases of a checkpoint and restore of 4 GiB of device memory, next to the driver and CRIU alone.

In memory, where both do the same work, and on a disk, where only ours waits until the image is safe there.
"""

import json
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from integration.hardware import baseline
from integration.hardware.options import Options
from integration.harness.bundle import Runtime
from integration.harness.diapause import REAL_GPU
from integration.harness.tools import toolset

MIB = 4096 if REAL_GPU else 64
ROUNDS = 3


def run(out: Path, options: Options) -> dict[str, object]:
    del out, options
    tools = toolset("current")
    with (
        tempfile.TemporaryDirectory(prefix="dp-") as disk,
        tempfile.TemporaryDirectory(prefix="dp-", dir="/dev/shm") as memory,
    ):
        runtime = Runtime(Path(disk) / "d", tools)
        plain = Runtime(Path(disk) / "p", tools, program=tools.find("runc"))
        try:
            places = {"memory": memory, "disk": disk}
            compared = {kind: _compare(runtime, plain, Path(folder)) for kind, folder in places.items()}
        finally:
            runtime.clean()
            plain.clean()
    return {
        "device_mib": MIB,
        **compared,
        "nvidia_utility": shutil.which("cuda-checkpoint")
        or "not on this machine: its calls are made by our helper",
    }


def _compare(runtime: Runtime, plain: Runtime, folder: Path) -> dict[str, object]:
    """Rounds in turns, with the images below `folder`: such machines change their mood."""
    ours: list[dict[str, object]] = []
    theirs: list[dict[str, object]] = []
    for _ in range(ROUNDS):
        result, edited = _ours(runtime, folder)
        ours.append(result)
        theirs.append(_theirs(plain, folder, edited))
        print(folder, ours[-1], theirs[-1], flush=True)
    medians = {key: [_median(ours, key), _median(theirs, key)] for key in ("checkpoint_s", "restore_s")}
    return {
        "diapause": ours,
        "driver_and_criu_alone": theirs,
        "medians_s": medians,
        "ratios": {key: round(pair[0] / pair[1], 3) for key, pair in medians.items()},
    }


def _median(rounds: list[dict[str, object]], key: str) -> float:
    return round(statistics.median(float(str(r[key])) for r in rounds), 3)


def _ours(runtime: Runtime, folder: Path) -> tuple[dict[str, object], dict[str, Any]]:
    """A round, and the specification as it was edited."""
    container = runtime.bundle("/opt/counter", "--mib", str(MIB), "--interval", "50").run()
    container.output.wait_step(3, seconds=60)
    edited: dict[str, Any] = json.loads(container.config.read_text())
    image = folder / "ours"
    start = time.monotonic()
    container.checkpoint(image)
    down = time.monotonic()
    container.restore(image)
    up = time.monotonic()
    container.goes_on(by=3)
    result: dict[str, object] = {
        "checkpoint_s": round(down - start, 3),
        "restore_s": round(up - down, 3),
        "image_bytes": sum(p.stat().st_size for p in image.iterdir()),
        "phases": json.loads((image / "diapause.json").read_text())["phases"],
    }
    container.remove()
    shutil.rmtree(image)
    return result, edited


def _theirs(plain: Runtime, folder: Path, spec: dict[str, Any]) -> dict[str, object]:
    container = baseline.without_us(plain, folder, spec).run()
    container.output.wait_step(3, seconds=60)
    libcuda = next(m["source"] for m in spec["mounts"] if "/libcuda.so" in m["destination"])
    result = baseline.there_and_back(container, folder / "theirs", libcuda)
    container.remove()
    return result
