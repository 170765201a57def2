"""The library beside the driver alone: every replaced function, and every way to load it."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

from integration.hardware import place
from integration.hardware.options import Options
from integration.hardware.reference import host_environment
from integration.hardware.trials import Trials
from integration.harness import hostroot
from integration.harness.bundle import Runtime
from integration.harness.diapause import REAL_GPU
from integration.harness.softgpu import environment, folder
from integration.harness.tools import ROOT, toolset
from integration.harness.wait import until


def run(out: Path, options: Options) -> dict[str, object]:
    """Options: `parts` (functions, loading joined by +), `groups` (of the C program), `engine`."""
    trials = Trials(out, options)
    calls = {"functions": _functions, "loading": _loading}
    with tempfile.TemporaryDirectory(prefix="dp-") as base:
        runtime = Runtime(Path(base) / "r", toolset("current"))
        try:
            for part in options.names("parts", list(calls)):
                trials.trial(part, lambda part=part: calls[part](runtime, options))  # type: ignore[misc]
        finally:
            runtime.clean()
    return trials.result()


def _functions(runtime: Runtime, options: Options) -> dict[str, object]:
    program = Path(os.environ["DIAPAUSE_NATIVE_TESTS"]) / "replaced"
    argv = [
        str(program), "--native", place.libcuda(runtime.settings),
        "--library", place.native("lib", "libdiapause-cuda.so"), "--print",
        *options.text("groups", "").split("+") * ("groups" in options.chosen),
    ]  # fmt: skip
    done = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        timeout=options.left,
        check=False,
        env=_host_environment(runtime),
    )
    lines = done.stdout.splitlines()
    different = [line for line in lines if line.startswith("DIFFERENT")]
    return {
        "ok": done.returncode == 0,
        "summary": lines[-1] if lines else done.stderr[-500:],
        "different": different,
        "allowed": [line for line in lines if line.startswith("allowed")],
        "groups_that_died": [line for line in lines if ".ended: " in line and "well" not in line],
        "native": [line[8:] for line in lines if line.startswith("native ")],
        "stderr": done.stderr[-1000:],
    }


def _host_environment(runtime: Runtime) -> dict[str, str]:
    if not REAL_GPU:  # under the names that a container has it
        both = runtime.base / "host"
        both.mkdir(exist_ok=True)
        for name in ("libcuda.so", "libcuda.so.1"):
            if not (both / name).exists():
                (both / name).symlink_to(folder() / "libcuda.so.1")
        return {**environment(), "LD_LIBRARY_PATH": str(both)}
    driver = os.path.dirname(place.libcuda(runtime.settings))
    return host_environment(driver, hostroot.ENVIRONMENT)


def _loading(runtime: Runtime, options: Options) -> dict[str, object]:
    """Each way on the host and in a container: the same answer, and in the container through the library."""
    python = hostroot.python()[0]
    here = str(ROOT / "integration/workloads/loading.py")
    native = subprocess.Popen(
        [python, here],
        env=_host_environment(runtime),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        with tempfile.TemporaryDirectory(prefix="dp-") as base, hostroot.hostroot(Path(base)) as root:
            argv = (python, f"{hostroot.PROGRAMS}/loading.py")
            container = root.bundle(runtime, *argv, engine=options.text("engine", "intercept")).run()
            until(
                lambda: "all ways" in container.output.text() or container.status() == "stopped",
                "end of all ways", seconds=min(120, options.left),
            )  # fmt: skip
            inside = _results(container.output.text())
            container.remove()
        outside = _results(native.communicate(timeout=60)[0])
    finally:
        native.kill()
    wrong = [way for way, result in inside.items() if not _good(result, outside.get(way, {}))]
    return {
        "ok": bool(inside) and inside.keys() == outside.keys() and not wrong,
        "wrong": wrong,
        "skipped_ways": {way: r["skipped"] for way, r in inside.items() if "skipped" in r},
        "container": inside,
        "host": outside,
    }


def _results(text: str) -> dict[str, dict[str, object]]:
    loaded = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return {str(entry["way"]): entry for entry in loaded}


def _good(inside: dict[str, object], outside: dict[str, object]) -> bool:
    if "skipped" in inside:
        return "skipped" in outside
    # What does not load, or dies of the driver itself, is no way to load it.
    no_way = str(inside["result"]).startswith(("OSError", "status -"))
    return inside["result"] == outside.get("result") and (no_way or bool(inside["ours"]))
