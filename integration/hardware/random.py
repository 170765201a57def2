"""Checkpoints at random moments of programs that nobody prepares or stops; all values are right."""

import random
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from integration.hardware import place
from integration.hardware.intercept import PROGRAMS
from integration.hardware.options import Options
from integration.hardware.reference import Reference
from integration.hardware.runs import Run
from integration.hardware.torch import KINDS, Program
from integration.hardware.trials import Trials
from integration.harness import hostroot
from integration.harness.bundle import Runtime
from integration.harness.tools import toolset

RESERVE = 75  # seconds at the end for comparing and ending


def run(out: Path, options: Options) -> dict[str, object]:
    """Options: `count` of all checkpoints; `programs` of `torch` and `intercept`, joined by +; `full`: every
    which one ends the container and restores it, while the others leave it running; `rest`: ms at most
    between two; `seed`; `engine`.
    """
    there = hostroot.python()[1]
    names = options.text("programs", "eager+generate" if there else "counter+churn").split("+")
    count = options.number("count", 300 if there else 10) // len(names)
    trials = Trials(out, options)
    trials.note(engine=options.text("engine", "intercept"), wanted=count * len(names))
    with tempfile.TemporaryDirectory(prefix="dp-") as folder, hostroot.hostroot(Path(folder)) as root:
        runtime = Runtime(Path(folder) / "r", toolset("current"))
        with place.scratch() as images, ThreadPoolExecutor(len(names)) as lanes:

            def one(name: str) -> bool:
                lane = Lane(options, root, runtime, images, name, count)
                return trials.trial(name, lane.run)

            list(lanes.map(one, names))
        runtime.clean()
    result = trials.result()
    entries = result["entries"]
    assert isinstance(entries, dict)
    done = sum(int(entry.get("checkpoints", 0)) for entry in entries.values())
    return {"done": done, **result}


class Lane:
    """One program and its checkpoints."""

    def __init__(
        self,
        options: Options,
        root: hostroot.HostRoot,
        runtime: Runtime,
        images: Path,
        name: str,
        count: int,
    ) -> None:
        self.options, self.name, self.count = options, name, count
        self.engine = options.text("engine", "intercept")
        self.moments = random.Random(f"{options.number('seed', 1)}{name}")
        self.root, self.runtime, self.images = root, runtime, images

    def run(self) -> dict[str, object]:
        run, reference = self._start()
        try:
            run.ready()
            made = self._checkpoints(run)
            run.wait_step(run.step + 30, seconds=60)
            text = run.end()
            compared = reference.compare(text, seconds=60) if reference else self._own(text)
            return {"checkpoints": sum(map(len, made.values())), **compared, **_summary(made)}
        except AssertionError:
            run.explain()
            raise
        finally:
            if reference:
                reference.close()
            run.close()

    def _start(self) -> tuple[Run, Reference | None]:
        if self.name.replace("_", " ") in KINDS:
            arguments = (*KINDS[self.name.replace("_", " ")], "--pace", "10")
            program = Program(self.root, self.runtime, self.images, arguments, self.engine)
            return program.start(), program.reference()
        first, *rest = PROGRAMS[self.name]
        return Run(
            self.runtime.bundle(f"/opt/{first}", *rest, "--gaps", engine=self.engine).run(), self.images
        ), None

    def _checkpoints(self, run: Run) -> dict[str, list[dict[str, object]]]:
        full, rest = self.options.number("full", 4), self.options.number("rest", 700) / 1000
        made: dict[str, list[dict[str, object]]] = {"return": [], "stay": []}
        for number in range(1, self.count + 1):
            if self.options.left < RESERVE:
                break
            time.sleep(rest * self.moments.random())
            way, call = ("stay", run.leave_running) if number % full else ("return", run.there_and_back)
            try:
                made[way].append(call())
            except AssertionError as error:
                raise AssertionError(f"checkpoint {number} ({way}): {error}") from error
            if number % 20 == 0:
                print(self.name, number, made[way][-1], flush=True)
        return made

    def _own(self, text: str) -> dict[str, object]:
        assert "BAD" not in text, text[text.index("BAD") :][:300]
        steps = [int(line.split()[1]) for line in text.splitlines() if line.startswith("step ")]
        assert steps == sorted(set(steps)), "a step twice"
        return {"steps": steps[-1]}


def _summary(made: dict[str, list[dict[str, object]]]) -> dict[str, object]:
    """Median, lowest and highest of each time, and the values in order, so that a drift can be seen."""
    summary: dict[str, object] = {}
    for way, results in made.items():
        for key in ("checkpoint_s", "pause_s", "restore_s", "first_step_s"):
            values = [float(str(result[key])) for result in results if key in result]
            if values:
                summary[f"{way}_{key}"] = {
                    "median": round(statistics.median(values), 3),
                    "lowest": min(values),
                    "highest": max(values),
                    "all": values,
                }
    return summary
