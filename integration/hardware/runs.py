"""A container that is saved and brought back, again and again, and what it printed over all its lives."""

import json
import re
import shutil
import subprocess
import time
from contextlib import AbstractContextManager
from itertools import pairwise
from pathlib import Path

from integration.harness.bundle import Bundle
from integration.harness.stuck import told_after
from integration.harness.tools import install
from integration.harness.wait import until

SLOW = 25.0  # seconds after which an operation is looked at from outside
WORDS = ("diapause", "criu", "runc", "pytorch", "/opt/")
_STEP = re.compile(r"^step (\d+) ", re.M)
_AT = re.compile(r" at ([\d.]+)$")


class Run:
    """Owns the container: `end` or `close` it."""

    def __init__(self, container: Bundle, images: Path) -> None:
        self.container = container
        self._images = images / container.id
        self._earlier = ""  # what it printed before its last restore
        self._number = 0
        self._images.mkdir(parents=True, exist_ok=True)

    @property
    def text(self) -> str:
        return self._earlier + self.container.output.text()

    @property
    def step(self) -> int:
        """The last step of all its lives, 0 before the first."""
        step = self.container.output.step()
        if step < 0:
            found = _STEP.findall(self._earlier[-4096:])
            step = int(found[-1]) if found else 0
        return step

    def wait_step(self, number: int, seconds: float = 30) -> float:
        """Wait until a step was done; return CLOCK_MONOTONIC then. Raises AssertionError, also for `BAD`."""

        def reached() -> bool:
            text = self.container.output.text()
            assert "BAD" not in text[-4096:], f"wrong value: {text[-600:]}"
            return self.step >= number

        try:
            until(reached, f"step {number}", seconds=seconds)
        except AssertionError as error:
            state = self.container.state().get("status")
            raise AssertionError(f"{error}; it is {state}; last output: {self.text[-800:]!r}") from None
        return time.monotonic()

    def wait_after(self, moment: float, seconds: float = 30) -> None:
        """Wait for a step that was done after a moment: one from before may still be on its way to us."""
        times = times_of(self.text)
        if not times:
            self.wait_step(self.step + 2, seconds)
            return
        while times[-1] <= moment:
            self.wait_step(self.step + 1, seconds)
            times = times_of(self.text)

    def ready(self, seconds: float = 90) -> None:
        """Wait for its first step, or for the reason why it skips: `skip` says."""
        try:
            until(lambda: self.step > 0 or self.skip(), "first step", seconds=seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}; output: {self.text[-1500:]!r}") from None

    def skip(self) -> str:
        found = re.search(r"^skip: (.*)$", self.text, re.M)
        return found[1] if found else ""

    # what is done with it; all times in seconds

    def there_and_back(self, *flags: str) -> dict[str, object]:
        """Checkpoint until it is gone, restore, and wait for the next step."""
        image = self._image()
        start = time.monotonic()
        with self._watched():
            self.container.checkpoint(image, *flags, seconds=100)
        down = time.monotonic()
        self._earlier += self.container.finished()
        at = self.step
        begin = time.monotonic()
        with self._watched():
            self.container.restore(image, seconds=100)
        up = time.monotonic()
        stepped = self.wait_step(at + 1)
        return {
            "checkpoint_s": round(down - start, 3),
            "restore_s": round(up - begin, 3),
            "first_step_s": round(stepped - begin, 3),
            "step": at,
            "image_bytes": size(image),
        }

    def leave_running(self, *flags: str) -> dict[str, object]:
        """A checkpoint after which it goes on; the image is not used."""
        image = self._image()
        at = self.step
        start = time.monotonic()
        with self._watched():
            self.container.checkpoint(image, "--leave-running", *flags, seconds=100)
        done = time.monotonic()
        self.wait_after(done)
        return {
            "checkpoint_s": round(done - start, 3),
            "pause_s": self.longest_gap(since=start),
            "step": at,
            "image_bytes": size(image),
        }

    def longest_gap(self, *, since: float) -> float:
        """The longest time between two steps that say `at`, from a moment of CLOCK_MONOTONIC on; 0: none."""
        gaps = [b - a for a, b in pairwise(times_of(self.text)) if b > since]
        return round(max(gaps, default=0.0), 3)

    def _image(self) -> Path:
        """A folder for the next image; all but the one before it are removed."""
        self._number += 1
        for old in self._images.iterdir():
            if old.name.partition("-")[0] != f"{self._number - 1}":
                self._forget(old)
        return self._images / f"{self._number}"

    def discard(self) -> None:
        """Remove the last image: what it holds in memory is wanted for the next."""
        if self.image.exists():
            self._forget(self.image)

    def _forget(self, image: Path) -> None:
        """Remove an image, and what of it lies in the local store."""
        try:
            name = json.loads((image / "diapause.json").read_text())["gpu_data"]["name"]
            argv = [str(install().cli), "snapshot", "rm", str(name)]
            done = subprocess.run(
                argv, env=self.container.runtime.env, capture_output=True, text=True, timeout=60, check=False
            )
            if done.returncode:
                print(f"{' '.join(argv)}: {done.stderr.strip()}", flush=True)
        except (OSError, KeyError, ValueError, TypeError):
            pass  # no manifest, or nothing in the store
        shutil.rmtree(image, ignore_errors=True)

    @property
    def image(self) -> Path:
        """The image of the last checkpoint."""
        return self._images / f"{self._number}"

    def _watched(self) -> AbstractContextManager[None]:
        return told_after(SLOW, WORDS, self.container.runtime.settings.run_dir)

    def end(self) -> str:
        """End it by SIGTERM; return all that it printed."""
        assert self.container.end(), f"it did not end within the time: {self.text[-300:]!r}"
        self.container.finished()
        return self.text

    def explain(self) -> None:
        """Print what helps to understand a failure: logs of the image's folders and of the run directory."""
        print(f"--- output of {self.container.id}:\n{self.text[-2000:]}", flush=True)
        folders = (self._images, self.container.runtime.settings.run_dir)
        for path in (p for folder in folders for p in sorted(folder.rglob("*"))):
            if path.is_file() and (path.suffix == ".log" or path.name in ("log", "journal")):
                lines = path.read_text(errors="replace").splitlines()
                print(f"--- {path} ({len(lines)} lines)", *lines[-40:], sep="\n", flush=True)

    def close(self) -> None:
        self.container.remove()
        for image in self._images.iterdir():
            self._forget(image)
        shutil.rmtree(self._images, ignore_errors=True)


def times_of(text: str) -> list[float]:
    """When the last steps were done, on CLOCK_MONOTONIC, of a program that says it."""
    found = [_AT.search(line) for line in text.splitlines()[-5000:] if line.startswith("step ")]
    return [float(match[1]) for match in found if match]


def size(folder: Path) -> int:
    """Bytes on the disk, so that holes do not count."""
    return sum(path.stat().st_blocks * 512 for path in folder.iterdir())
