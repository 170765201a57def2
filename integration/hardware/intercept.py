"""Programs of every kind as containers, each two rounds there and back, with values that it checks itself."""

import json
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from integration.hardware import place
from integration.hardware.options import Options
from integration.hardware.runs import Run
from integration.hardware.trials import Trials
from integration.harness.bundle import Runtime
from integration.harness.diapause import REAL_GPU
from integration.harness.tools import toolset

PROGRAMS = {  # what nobody can tell apart from its name → the program
    "counter": ("counter", "--mib", "16", "--interval", "20"),
    "counter_large": ("counter", "--mib", "4096" if REAL_GPU else "64", "--interval", "20"),
    "small_allocations": ("many", "--count", "25000" if REAL_GPU else "500", "--interval", "0"),
    "churn": ("churn", "--threads", "8", "--interval", "20"),
    "threads": ("threads", "--threads", "64", "--interval", "20"),
    "poll_events": ("poller", "--mode", "event"),
    "poll_streams": ("poller", "--mode", "stream"),
    "poll_context": ("poller", "--mode", "sync"),
    "pinned": ("pinned", "--interval", "20"),
    "callbacks": ("callbacks",),
    "capture": ("capture", "--interval", "20"),
    "vmm": ("vmm", "--mib", "64" if REAL_GPU else "2", "--interval", "20"),
    "two_processes": ("twoproc", "--interval", "20"),
    "forked": ("forked", "--interval", "20"),
    "poll_64_threads": ("poller", "--mode", "both", "--threads", "64"),
}


def run(out: Path, options: Options) -> dict[str, object]:
    """Options: `programs` (joined by +), `rounds`, `engine`, `ways` (return, stay, suspend joined by +)."""
    trials = Trials(out, options)
    engine = options.text("engine", "intercept")
    ways = options.names("ways", ["return", "stay", "suspend"])
    rounds = options.number("rounds", 2)
    trials.note(engine=engine)
    with tempfile.TemporaryDirectory(prefix="dp-") as folder, place.scratch() as images:
        runtime = Runtime(Path(folder) / "r", toolset("current"))

        def one(name: str) -> dict[str, object]:
            first, *rest = PROGRAMS[name]
            run = Run(runtime.bundle(f"/opt/{first}", *rest, "--gaps", engine=engine).run(), images)
            try:
                return _ways(run, ways, rounds)
            except AssertionError:
                run.explain()
                raise
            finally:
                run.close()

        try:
            for name in options.names("programs", list(PROGRAMS)):
                trials.trial(name, lambda name=name: one(name), needs=25)  # type: ignore[misc]
        finally:
            runtime.clean()
    return trials.result()


def _ways(run: Run, ways: list[str], rounds: int) -> dict[str, object]:
    result: dict[str, object] = {}
    run.ready()
    run.wait_step(3)
    if "stay" in ways:
        result["stay"] = run.leave_running()
    if "suspend" in ways:
        result["suspend"] = suspend(run)
    if "return" in ways:
        result["return"] = [{**run.there_and_back(), **manifest(run.image)} for _ in range(rounds)]
    run.wait_step(run.step + 5)
    text = run.end()
    assert "BAD" not in text, text[text.index("BAD") :][:300]
    steps = [int(line.split()[1]) for line in text.splitlines() if line.startswith("step ")]
    assert all(a < b for a, b in pairwise(steps)), "a step twice"
    return result


def suspend(run: Run, *flags: str) -> dict[str, object]:
    """The GPU is freed and the process stays, then it goes on; seconds as a client sees them."""
    runtime, id = run.container.runtime, run.container.id
    start = time.monotonic()
    runtime("suspend", *flags, id, seconds=60)
    down = time.monotonic()
    used = place.gpu_memory_used()
    begin = time.monotonic()
    runtime("resume", id, seconds=60)
    up = time.monotonic()
    stepped = run.wait_step(run.step + 1)
    return {
        "suspend_s": round(down - start, 3),
        "resume_s": round(up - begin, 3),
        "first_step_s": round(stepped - begin, 3),
        "gpu_bytes_meanwhile": used,
    }


def manifest(image: Path) -> dict[str, object]:
    """Which way was taken, phases and bytes of a checkpoint, as its manifest says."""
    loaded = json.loads((image / "diapause.json").read_text())
    kept = ("evacuated", "phases", "gpu_data")
    return {key: loaded[key] for key in kept if key in loaded}
