"""How long a large training stands still, beside the driver and CRIU alone in the same run.

What is measured here is what a client sees; the phases and bytes of each checkpoint come from its manifest.
"""

import os
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from integration.hardware import baseline, controller, place
from integration.hardware.intercept import PROGRAMS, manifest, suspend
from integration.hardware.memory import Peak, touch
from integration.hardware.options import Options
from integration.hardware.reference import Reference, host_environment
from integration.hardware.runs import Run, times_of
from integration.hardware.speed_table import table
from integration.hardware.torch import PROGRAM
from integration.hardware.trials import Skipped, Trials
from integration.harness import hostroot
from integration.harness.bundle import Bundle, Runtime
from integration.harness.diapause import REAL_GPU
from integration.harness.node import Node
from integration.harness.softgpu import environment
from integration.harness.tools import ROOT, toolset
from integration.harness.workloads import folder as workloads

# In the order of their weight: time may run out.
PARTS = ["warm", "large", "driver", "small", "price", "verify", "embedded", "steps", "ctr"]
IMAGE = "docker.io/library/host:latest"
TURNS = 16  # of each, when two programs take turns on the GPU
TURN = 0.6  # seconds


def run(out: Path, options: Options) -> dict[str, object]:
    """Options: `parts` (joined by +), `gigabytes`, `engine`, `rounds`."""
    trials = Trials(out, options)
    parts = options.names("parts", PARTS)
    with (
        tempfile.TemporaryDirectory(prefix="dp-") as folder,
        hostroot.hostroot(Path(folder)) as root,
        place.scratch() as images,
    ):
        speed = Speed(root, images, options, trials)
        try:
            for part in PARTS:
                if part in parts:
                    getattr(speed, part)()
        finally:
            speed.close()
    result = trials.result()
    text = table(result)
    (out / "speed.md").write_text(text)
    print(text, flush=True)
    return result


class Speed:
    """The parts of the section; each notes its results itself."""

    def __init__(self, root: hostroot.HostRoot, images: Path, options: Options, trials: Trials) -> None:
        tools = toolset("current")
        self.root, self.images, self.options, self.trials = root, images, options, trials
        self.engine = options.text("engine", "intercept")
        self.python, self.torch = hostroot.python()
        self.runtime = Runtime(images / "d", tools)
        self.runtime.env |= controller.settings(images, self.gigabytes)
        self.plain = Runtime(images / "p", tools, program=tools.find("runc"))
        self.last = ""  # what the large training printed, for `verify`
        trials.note(engine=self.engine, gigabytes=self.gigabytes)

    @property
    def gigabytes(self) -> int:
        return self.options.number("gigabytes", 27)

    def close(self) -> None:
        self.runtime.clean()
        self.plain.clean()
        if REAL_GPU:
            controller.stop(place.libcuda(self.runtime.settings), self.runtime.env)

    # programs

    def training(self) -> tuple[str, ...]:
        """The large training; without PyTorch a counter stands in for it."""
        if not self.torch:
            return ("/opt/counter", "--mib", "256", "--interval", "10", "--gaps")
        options = ("--gigabytes", str(self.gigabytes), "--pace", "0", "--check", "1000000")
        return (self.python, f"{hostroot.PROGRAMS}/{PROGRAM}", "large", *options)

    def bundle(self, *argv: str, engine: str) -> Bundle:
        if argv[0].startswith("/opt/") and not self.torch:
            return self.runtime.bundle(*argv, engine=engine)
        return self.root.bundle(self.runtime, *argv, engine=engine)

    def start(self, *argv: str) -> Run:
        run = Run(self.bundle(*argv, engine=self.engine).run(), self.images)
        run.ready(seconds=120)
        return run

    def native_environment(self) -> dict[str, str]:
        if not REAL_GPU:
            return environment()
        folder = os.path.dirname(place.libcuda(self.runtime.settings))
        return host_environment(folder, hostroot.ENVIRONMENT)

    # parts

    def warm(self) -> None:
        """Start the controller and wait until its memory for snapshots is there."""

        def measured() -> dict[str, object]:
            if not REAL_GPU:
                raise Skipped("the software GPU's controller starts with its first checkpoint")
            libcuda = place.libcuda(self.runtime.settings)
            touch(self.images / "touched", 2 * int(self.gigabytes * 1e9))
            return {
                **controller.warm(libcuda, self.runtime.env, int(self.gigabytes * 1e9)),
                "gpu_bytes": place.gpu_memory_used(),
            }

        self.trials.trial("warm", measured, needs=30)

    def price(self) -> None:
        """Calls natively and through the library, in turns; the lowest of each."""
        native = self.native_environment()
        ours = self.images / "ours"
        ours.mkdir()
        (ours / "libcuda.so.1").symlink_to(place.native("lib", "libdiapause-cuda.so"))
        real = place.libcuda(self.runtime.settings)
        through = {**native, "LD_LIBRARY_PATH": str(ours), "DIAPAUSE_REAL_LIBCUDA": real}

        def measured() -> dict[str, object]:
            found: dict[str, dict[str, list[float]]] = {"native": {}, "library": {}}
            for _ in range(3):
                for label, env in (("native", native), ("library", through)):
                    for name, number in _prices(env).items():
                        found[label].setdefault(name, []).append(number)
            best = {
                label: {name: max(v) if name in ("down", "up") else min(v) for name, v in values.items()}
                for label, values in found.items()
            }
            ratios = {name: round(best["library"][name] / best["native"][name], 3) for name in best["native"]}
            return {**best, "ratios": ratios}

        self.trials.trial("price", measured, needs=30)

    def steps(self) -> None:
        """The eager training in two containers, one of them without the library: one stands still while the
        other runs."""

        def measured() -> dict[str, object]:
            if not self.torch:
                raise Skipped("no PyTorch here")
            argv = (
                self.python,
                f"{hostroot.PROGRAMS}/{PROGRAM}",
                "eager",
                "--pace",
                "0",
                "--check",
                "1000000",
            )
            runs = {}
            try:
                for name, engine in (("without", "driver"), ("library", self.engine)):
                    runs[name] = Run(self.bundle(*argv, engine=engine).run(), self.images)
                for run in runs.values():
                    run.ready(seconds=120)
                    run.wait_step(50, seconds=60)
                found = _take_turns(runs)
                for run in runs.values():
                    run.end()
            finally:
                for run in runs.values():
                    run.close()
            ours, theirs = found["library"], found["without"]
            return {
                "without_ms": theirs,
                "library_ms": ours,
                "ratio_p10": round(ours["p10"] / theirs["p10"], 4),
                "ratio_median": round(ours["median"] / theirs["median"], 4),
            }

        self.trials.trial("steps", measured, needs=60)

    def large(self) -> None:
        """Dump and restore, the pause of a checkpoint that leaves it running, suspend and resume."""
        run = self.started("large start")
        if run is None:
            return
        try:
            for number in range(1, self.options.number("rounds", 2) + 1):
                self.operation(f"dump and restore {number}", run, run.there_and_back)
                self.operation(f"leave running {number}", run, run.leave_running)
                self.operation(f"suspend and resume {number}", run, lambda: suspend(run))
            self.operation("suspend and resume light", run, lambda: suspend(run, "--light"))
            self.trials.trial("large end", lambda: {"kept": self.keep(run.end())}, needs=0)
        finally:
            run.close()
        self.trials.note(gpu_bytes_of_the_controller=place.gpu_memory_used())

    def embedded(self) -> None:
        """Everything into the image directory."""
        self.runtime.env["DIAPAUSE_SNAPSHOT_PLACEMENT"] = "embedded"
        run = self.started("embedded start")
        if run is None:
            return
        try:
            self.operation("embedded dump and restore", run, run.there_and_back)
        finally:
            run.close()
            self.runtime.env["DIAPAUSE_SNAPSHOT_PLACEMENT"] = "local"

    def driver(self) -> None:
        """The same training by the driver's own calls and CRIU, under plain runc."""

        def measured() -> dict[str, object]:
            argv = self.training()
            spec = baseline.edited(self.bundle(*argv, engine="driver"))
            layer = hostroot.layer() if self.torch else b""
            container = baseline.without_us(self.plain, self.images, spec, layer).run()
            try:
                container.output.wait_step(3, seconds=90)
                libcuda = next(m["source"] for m in spec["mounts"] if "/libcuda.so" in m["destination"])
                return baseline.there_and_back(container, self.images / "theirs", libcuda, seconds=120)
            finally:
                container.remove()

        self.trials.trial("driver and CRIU", measured, needs=110)

    def ctr(self) -> None:
        """What a client of containerd waits for."""

        def measured() -> dict[str, object]:
            node = Node(toolset("current"))
            # The same controller: it has the memory of the whole run.
            ours = {key: value for key, value in self.runtime.env.items() if key.startswith("DIAPAUSE_")}
            node.daemon.env.update(ours)
            try:
                node.start()
                node.load(IMAGE, hostroot.layer())
                return self.through(node)
            finally:
                node.close()

        self.trials.trial("ctr", measured, needs=90 if REAL_GPU else 30)

    def through(self, node: Node) -> dict[str, object]:
        if self.torch:
            container = node.run(
                *self.training(),
                image=IMAGE, engine=self.engine, options=self.root.options(), env=hostroot.ENVIRONMENT,
            )  # fmt: skip
        else:
            container = node.run(*self.training(), engine=self.engine)
        container.output.wait_step(20, seconds=90)
        start = time.monotonic()
        image = container.checkpoint(seconds=120)
        down = time.monotonic()
        container.output.wait_step(container.output.step() + 1)
        pause = max((b - a for a, b in pairwise(times_of(container.output.text())) if b > start), default=0.0)
        container.remove()
        begin = time.monotonic()
        restored = node.restore(image, seconds=120)
        up = time.monotonic()
        restored.output.wait_step(restored.output.step() + 1)
        first = time.monotonic()
        restored.remove()
        return {
            "checkpoint_s": round(down - start, 3),
            "pause_s": round(pause, 3),
            "restore_s": round(up - begin, 3),
            "first_step_s": round(first - begin, 3),
        }

    def small(self) -> None:
        """What 50,000 allocations add to each way, beside a few of the same."""
        many = PROGRAMS["small_allocations"]
        for name, argv in (("few allocations", ("many", "--count", "10")), ("50,000 allocations", many)):

            def measured(argv: tuple[str, ...] = argv) -> dict[str, object]:
                run = Run(
                    self.runtime.bundle(f"/opt/{argv[0]}", *argv[1:], engine=self.engine).run(), self.images
                )
                try:
                    run.ready()
                    result = {**run.there_and_back(), **manifest(run.image)}
                    run.end()
                    return result
                finally:
                    run.close()

            self.trials.trial(name, measured, needs=25)

    def verify(self) -> None:
        """The large training once more, undisturbed: all steps and the state at the end are equal."""

        def measured() -> dict[str, object]:
            if not (self.torch and self.last):
                raise Skipped("nothing to compare")
            arguments = ("large", "--gigabytes", str(self.gigabytes), "--pace", "0", "--check", "1000000")
            last = [line.split()[1] for line in self.last.splitlines() if line.startswith("check ")][-1]
            program = str(ROOT / "integration/workloads" / PROGRAM)
            argv = (self.python, program, *arguments, "--steps", last)
            reference = Reference(argv, self.native_environment())
            try:
                return reference.compare(self.last, seconds=self.options.left)
            finally:
                reference.close()

        self.trials.trial("verify", measured, needs=40)

    # how they are measured

    def started(self, name: str) -> Run | None:
        found: list[Run] = []

        def started() -> dict[str, object]:
            found.append(self.start(*self.training()))
            found[0].wait_step(10)
            return {"gpu_bytes": place.gpu_memory_used()}

        return found[0] if self.trials.trial(name, started, needs=40) else None

    def operation(self, name: str, run: Run, call: Callable[[], dict[str, object]]) -> None:
        """An operation with its peak of memory and what its manifest says."""

        def measured() -> dict[str, object]:
            time.sleep(0.5)
            with Peak() as peak:
                result = call()
            if "checkpoint_s" in result:
                result |= manifest(run.image)
            run.discard()
            return {**result, "peak_host_bytes": peak.bytes}

        try:
            if not self.trials.trial(name, measured, needs=15):
                run.explain()
        except OSError as error:
            print(f"{name}: {error}", flush=True)

    def keep(self, text: str) -> int:
        self.last = text
        return len(text)


def _prices(env: dict[str, str]) -> dict[str, float]:
    done = subprocess.run(
        [str(workloads() / "price")], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, f"price: {done.stderr}"
    return {line.split()[0]: float(line.split()[1]) for line in done.stdout.splitlines()}


def _take_turns(runs: dict[str, Run]) -> dict[str, dict[str, float]]:
    """Let one of them run at a time, many times; milliseconds a step of each."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    pids = {name: run.container.pid() for name, run in runs.items()}
    for pid in pids.values():
        os.kill(pid, signal.SIGSTOP)
    try:
        for _ in range(TURNS):
            for name, run in runs.items():
                os.kill(pids[name], signal.SIGCONT)
                start = time.monotonic()
                time.sleep(TURN)
                os.kill(pids[name], signal.SIGSTOP)
                found = [at for at in times_of(run.text) if at > start + TURN / 4]
                times[name] += [b - a for a, b in pairwise(found)]
    finally:
        for pid in pids.values():
            os.kill(pid, signal.SIGCONT)
    return {name: _percentiles(values) for name, values in times.items()}


def _percentiles(values: list[float]) -> dict[str, float]:
    assert len(values) > 20, f"only {len(values)} steps were seen"
    tenths = statistics.quantiles(values, n=10)
    return {
        "p10": round(tenths[0] * 1e3, 4),
        "median": round(statistics.median(values) * 1e3, 4),
        "steps": len(values),
    }
