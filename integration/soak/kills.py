"""kill -9 at random moments of dumps and restores; after each the container goes on, or can be restored."""

import contextlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from integration.harness import proc
from integration.harness.bundle import Bundle, RuncError, Runtime
from integration.harness.tools import toolset
from integration.harness.wait import until
from integration.harness.workloads import COUNTER

VICTIMS = ("front", "engine", "both")


def run(kills: int, *, seed: int) -> dict[str, object]:
    dice = random.Random(seed)
    outcomes: Counter[str] = Counter()
    failures: list[str] = []
    base = Path(tempfile.mkdtemp(prefix="dp-"))
    runtime = Runtime(base, toolset("current"))
    clean = runtime.footprint()
    try:
        container = _fresh(runtime, base)
        for number in range(kills):
            operation, victim, delay = (
                dice.choice(("dump", "restore")),
                dice.choice(VICTIMS),
                dice.random() * 0.8,
            )
            try:
                outcomes[_kill(runtime, container, base, operation, victim, delay)] += 1
                _as_before(runtime)
            except (AssertionError, subprocess.TimeoutExpired) as error:
                failures.append(
                    f"kill {number} ({operation}, {victim}, {delay:.3f} s, seed {seed}): {error}"[:600]
                )
                runtime.clean()
                container = _fresh(runtime, base)
            if number % 10 == 9:
                print(f"  {number + 1} kills, {len(failures)} failures", file=sys.stderr, flush=True)
        runtime.clean()
        left = {k: v for k, v in runtime.footprint().items() if v != clean[k]}
        if left:
            failures.append(f"left behind: {left}")
    finally:
        runtime.clean()
        proc.unmount_below(base)
        shutil.rmtree(base, ignore_errors=True)
    return {"kills": kills, "seed": seed, "outcomes": dict(outcomes), "failures": failures}


def _fresh(runtime: Runtime, base: Path) -> Bundle:
    """A running container, and a good image of it."""
    container = runtime.bundle(*COUNTER).run()
    container.output.wait_step(3)
    shutil.rmtree(base / "good", ignore_errors=True)
    container.checkpoint(base / "good", "--leave-running")
    return container


def _kill(runtime: Runtime, container: Bundle, base: Path, operation: str, victim: str, delay: float) -> str:
    """One kill and the repair that a client would make; return what the kill had met."""
    image = base / "image"
    running: subprocess.Popen[str] | subprocess.Popen[bytes]
    if operation == "dump":
        shutil.rmtree(image, ignore_errors=True)
        paths = ("--image-path", str(image), "--work-path", str(base / "work"))
        running = runtime.start("checkpoint", *paths, container.id)
    else:
        container.kill_and_delete()
        running = container.start_restore(base / "good")
    end = time.monotonic() + delay
    until(lambda: time.monotonic() > end or running.poll() is not None, "the moment")
    alive = running.poll() is None
    for pid in _victims(running.pid, victim):
        proc.kill(pid, signal.SIGKILL)
    running.communicate(timeout=60)
    until(lambda: not _working(runtime), "end of the engine", seconds=60)
    with contextlib.suppress(RuncError):  # there may be nothing to resume
        runtime("resume", container.id)  # the next verb repairs
    went_on = container.status() == "running"
    if not went_on:
        complete = (image / "diapause.json").exists() and operation == "dump"
        container.kill_and_delete()
        container.restore(image if complete else base / "good")
    container.goes_on(by=3)
    return f"{operation}: {'interrupted' if alive else 'done before'}, {'went on' if went_on else 'restored'}"


def _victims(front: int, victim: str) -> list[int]:
    engines = [p for p in proc.descendants(front) if "diapause.runtime" in proc.cmdline(p)]
    return {"front": [front], "engine": engines, "both": [front, *engines]}[victim]


def _working(runtime: Runtime) -> list[int]:
    verbs = ("checkpoint --image-path", "restore -d")
    lines = {p: proc.cmdline(p) for p in proc.pids()}
    return [p for p, line in lines.items() if str(runtime.root) in line and any(v in line for v in verbs)]


def _as_before(runtime: Runtime) -> None:
    assert not list(runtime.settings.run_dir.glob("c/*/journal")), "a journal is left"
    assert runtime.footprint()["processes"] == [], f"processes are left: {runtime.footprint()['processes']}"
