"""The phases of a checkpoint and restore of 4 GiB of device memory, next to the driver and CRIU alone.

In memory, where both do the same work, and on a disk, where only ours waits until the image is safe there.
"""

import json
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from integration.hardware import place
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


class _Driver:
    """The driver's calls on one process, by the helper that the package brings."""

    def __init__(self, pid: int, libcuda: str) -> None:
        program = place.native("bin", "diapause-cudactl")
        self._pid = pid
        self._process = subprocess.Popen([program, "--libcuda", libcuda], text=True, bufsize=1,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
        assert self._process.stdout is not None
        self._process.stdout.readline()

    def call(self, verb: str, *arguments: str) -> float:
        """Make a call; return its seconds. Raises if the driver refuses."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        start = time.monotonic()
        self._process.stdin.write(" ".join(["1", verb, str(self._pid), *arguments]) + "\n")
        answer = self._process.stdout.readline().split()
        assert answer[1] == "0", f"{verb}: {answer}"
        return round(time.monotonic() - start, 3)

    def close(self) -> None:
        self._process.communicate(timeout=20)


def _theirs(plain: Runtime, folder: Path, edited: dict[str, Any]) -> dict[str, object]:
    """The driver's calls by hand, then plain runc with CRIU: what nothing can be faster than on this path."""
    container = plain.bundle(engine="")
    spec = {
        **edited,
        "root": {"path": "rootfs"},
        "annotations": {"org.criu.config": str(folder / "criu.conf")},
    }
    spec.pop("hooks", None)
    spec["linux"] = {**edited["linux"], "cgroupsPath": f"/plain-{container.id}"}
    container.spec = spec
    (folder / "criu.conf").write_text("network-lock skip\n")
    container.write_spec()
    container.run()
    container.output.wait_step(3, seconds=60)
    image = folder / "theirs"
    calls: dict[str, float] = {}
    libcuda = next(m["source"] for m in edited["mounts"] if "/libcuda.so" in m["destination"])
    driver = _Driver(container.pid(), libcuda)
    calls["lock"] = driver.call("lock", "10000")
    calls["checkpoint"] = driver.call("checkpoint")
    driver.close()
    start = time.monotonic()
    container.checkpoint(image)
    calls["criu_dump"] = round(time.monotonic() - start, 3)
    start = time.monotonic()
    container.restore(image)
    calls["criu_restore"] = round(time.monotonic() - start, 3)
    driver = _Driver(container.pid(), libcuda)
    calls["restore"] = driver.call("restore")
    calls["unlock"] = driver.call("unlock")
    driver.close()
    container.goes_on(by=3)
    container.remove()
    shutil.rmtree(image)
    return {
        "checkpoint_s": round(calls["lock"] + calls["checkpoint"] + calls["criu_dump"], 3),
        "restore_s": round(calls["criu_restore"] + calls["restore"] + calls["unlock"], 3),
        "calls": calls,
    }
