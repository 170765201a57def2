"""The driver's calls by hand, then plain runc with CRIU: what nothing can be faster than on this path."""

import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from integration.hardware import place
from integration.harness.bundle import Bundle, Runtime


class Driver:
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


def edited(container: Bundle) -> dict[str, Any]:
    """The specification of a container as we hand it to runc; the container is gone afterwards."""
    container.create()
    spec: dict[str, Any] = json.loads(container.config.read_text())
    container.remove()
    return spec


def without_us(plain: Runtime, folder: Path, spec: dict[str, Any], layer: bytes = b"") -> Bundle:
    """A container on plain runc that has what we gave to one of ours; not yet started."""
    container = plain.bundle(engine="", layer=layer)
    (folder / "criu.conf").write_text("network-lock skip\n")
    container.spec = {
        **spec,
        "root": {"path": "rootfs"},
        "annotations": {"org.criu.config": str(folder / "criu.conf")},
    }
    container.spec.pop("hooks", None)
    container.spec["linux"] = {**spec["linux"], "cgroupsPath": f"/plain-{container.id}"}
    container.write_spec()
    return container


def there_and_back(container: Bundle, image: Path, libcuda: str, seconds: float = 60) -> dict[str, object]:
    """Both ways of a running container, seconds of each call; it counts on afterwards."""
    calls: dict[str, float] = {}
    driver = Driver(container.pid(), libcuda)
    calls["lock"] = driver.call("lock", "10000")
    calls["checkpoint"] = driver.call("checkpoint")
    driver.close()
    start = time.monotonic()
    container.checkpoint(image, seconds=seconds)
    calls["criu_dump"] = round(time.monotonic() - start, 3)
    size = sum(path.stat().st_blocks * 512 for path in image.iterdir())
    start = time.monotonic()
    container.restore(image, seconds=seconds)
    calls["criu_restore"] = round(time.monotonic() - start, 3)
    driver = Driver(container.pid(), libcuda)
    calls["restore"] = driver.call("restore")
    calls["unlock"] = driver.call("unlock")
    driver.close()
    at = time.monotonic()
    container.output.wait_step(container.output.step() + 1, seconds=seconds)
    calls["first_step"] = round(time.monotonic() - at, 3)
    shutil.rmtree(image)
    down = ("lock", "checkpoint", "criu_dump")
    up = ("criu_restore", "restore", "unlock")
    return {
        "checkpoint_s": round(sum(calls[name] for name in down), 3),
        "restore_s": round(sum(calls[name] for name in up), 3),
        "first_step_s": round(sum(calls[name] for name in (*up, "first_step")), 3),
        "image_bytes": size,
        "calls": calls,
    }
