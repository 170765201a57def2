"""PyTorch programs, each beside an undisturbed run of itself: two rounds there and back, all values equal."""

import os
import random
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from integration.hardware import place
from integration.hardware.options import Options
from integration.hardware.reference import Reference, host_environment
from integration.hardware.runs import Run
from integration.hardware.trials import Skipped, Trials
from integration.harness import hostroot
from integration.harness.bundle import Runtime
from integration.harness.diapause import REAL_GPU
from integration.harness.tools import ROOT, toolset

PROGRAM = "pytorch"
KINDS = {  # name → arguments of the program
    "eager": ("eager",),
    "graphs": ("graphs",),
    "expandable segments": ("sizes", "--allocator", "expandable_segments:True"),
    "cudaMallocAsync": ("sizes", "--allocator", "backend:cudaMallocAsync"),
    "caching allocator": ("sizes",),
    "data loader": ("loader",),
    "generate": ("generate",),
    "operators": ("operators",),
    "triton kernel": ("kernel",),
    "compile": ("compiled",),
}
AFTER = 30 if REAL_GPU else 5  # steps after the last restore


def run(out: Path, options: Options) -> dict[str, object]:
    """Options: `kinds` (joined by +, spaces as _), `rounds`, `lanes`, `engine`, `seed`."""
    names = options.names("kinds", [name.replace(" ", "_") for name in KINDS])
    engine = options.text("engine", "intercept")
    trials = Trials(out, options)
    trials.note(engine=engine)
    numbers = random.Random(options.number("seed", 1))
    seeds = {name: numbers.random() for name in names}
    with tempfile.TemporaryDirectory(prefix="dp-") as folder, hostroot.hostroot(Path(folder)) as root:
        runtime = Runtime(Path(folder) / "r", toolset("current"))
        with place.scratch() as images, ThreadPoolExecutor(options.number("lanes", 2)) as lanes:

            def one(name: str) -> bool:
                arguments = KINDS[name.replace("_", " ")]
                program = Program(root, runtime, images, arguments, engine)
                rounds = options.number("rounds", 2)
                return trials.trial(name, lambda: program.disturbed(rounds, seeds[name]), needs=45)

            list(lanes.map(one, names))
        runtime.clean()
    return trials.result()


class Program:
    """One PyTorch program, in a container and on the host."""

    def __init__(
        self, root: hostroot.HostRoot, runtime: Runtime, images: Path, arguments: tuple[str, ...], engine: str
    ) -> None:
        self.root, self.runtime, self.images = root, runtime, images
        self.arguments, self.engine = arguments, engine
        self.python, self.there = hostroot.python()

    def start(self) -> Run:
        if not self.there:
            raise Skipped("no PyTorch here")
        argv = (self.python, f"{hostroot.PROGRAMS}/{PROGRAM}", *self.arguments)
        return Run(self.root.bundle(self.runtime, *argv, engine=self.engine).run(), self.images)

    def reference(self) -> Reference:
        libraries = os.path.dirname(place.libcuda(self.runtime.settings))
        argv = (self.python, str(ROOT / "integration/workloads" / PROGRAM), *self.arguments)
        caches = {f"{key}_CACHE_DIR": f"{self.images}/{key}" for key in ("TORCHINDUCTOR", "TRITON")}
        return Reference(argv, host_environment(libraries, {**hostroot.ENVIRONMENT, **caches}))

    def disturbed(self, rounds: int, seed: float) -> dict[str, object]:
        """Rounds at random moments; the result says how long each took and how much was compared."""
        run = self.start()
        reference = self.reference()
        moments = random.Random(seed)
        try:
            run.ready()
            if run.skip():
                raise Skipped(run.skip())
            made = []
            for _ in range(rounds):
                time.sleep(0.3 + 1.5 * moments.random())
                made.append(run.there_and_back())
                print(*self.arguments, made[-1], flush=True)
            run.wait_step(run.step + AFTER, seconds=60)
            text = run.end()
            return {"rounds": made, **reference.compare(text, seconds=60), "first_line": text.split("\n")[0]}
        except AssertionError:
            run.explain()
            print(f"--- undisturbed:\n{reference.text()[-600:]}", flush=True)
            raise
        finally:
            reference.close()
            run.close()
