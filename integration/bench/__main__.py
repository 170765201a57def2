"""`make bench`: a table on stdout, the samples as JSON in build/results/bench.json.

Exit status 1: a target was missed.
"""

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from pathlib import Path

from integration.bench import measures
from integration.bench.measures import Result
from integration.bench.sample import pin
from integration.harness.bundle import Runtime
from integration.harness.node import Node
from integration.harness.tools import ROOT, toolset

OUTPUT = ROOT / "build/results/bench.json"


def main() -> int:
    arguments = argparse.ArgumentParser(prog="bench", description=__doc__)
    arguments.add_argument(
        "--rounds", type=int, default=40, help="of each comparison (five times as many for verbs)"
    )
    rounds = arguments.parse_args().rounds
    pin()
    results = measure(rounds)
    print(f"{'':<42}{'measured':>12}{'target':>12}")
    for result in results:
        verdict = "" if result.met else "  missed"
        print(f"{result.name:<42}{result.value:>8.2f} {result.unit:<7}{result.target:>6.2f}{verdict}")
        for label in result.samples.values:
            low, median = result.samples.low(label), result.samples.median(label)
            print(f"    {label:<38}{low:>8.2f} ms low, {median:.2f} ms median")
    print("software GPU: these compare code paths; they say nothing about the speed of a GPU")
    write(results)
    return 0 if all(result.met for result in results) else 1


def measure(rounds: int) -> list[Result]:
    tools = toolset("current")
    base = Path(tempfile.mkdtemp(prefix="dp-"))
    node = Node(tools).start()
    runtime = Runtime(base / "d", tools)
    plain = Runtime(base / "p", tools, program=tools.find("runc"))
    try:
        return [
            measures.pass_through(runtime, rounds * 5),
            measures.unmanaged(node, rounds),
            measures.managed(node, rounds),
            *measures.there_and_back(runtime, plain, max(5, rounds // 2)),
        ]
    finally:
        runtime.clean()
        plain.clean()
        node.close()
        shutil.rmtree(base, ignore_errors=True)


def write(results: list[Result]) -> None:
    document = {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "kernel": platform.release(),
        "cpus": len(os.sched_getaffinity(0)),
        "gpu": "software",
        "results": [
            {"name": r.name, "unit": r.unit, "value": round(r.value, 3), "target": r.target, "met": r.met,
             "samples_ms": {k: [round(x, 2) for x in v] for k, v in r.samples.values.items()}}
            for r in results
        ],
    }  # fmt: skip
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(json.dumps(document, indent=1) + "\n")
    print(f"Wrote {OUTPUT.relative_to(ROOT)}")


if __name__ == "__main__":
    sys.exit(main())
