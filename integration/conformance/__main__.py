"""`make conformance`: fails when diapause-runc does otherwise than runc, or than expected.json says."""

import argparse
import datetime
import json
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from integration.conformance.client import Client
from integration.conformance.suite import FILES, Suite
from integration.harness.diapause import Settings
from integration.harness.tools import ROOT, component, install, toolset

EXPECTED = Path(__file__).parent / "expected.json"
RESULTS = ROOT / "docs/results"
CLIENT = "client"  # containerd's suite, among the names of runc's files


def main() -> int:
    arguments = argparse.ArgumentParser(prog="conformance", description=__doc__)
    arguments.add_argument("--record", action="store_true", help="write expected.json and docs/results anew")
    arguments.add_argument(
        "files", nargs="*", default=[*FILES, CLIENT], help="bats files without .bats; client"
    )
    options = arguments.parse_args()
    tools = toolset("current")
    scratch = Path(tempfile.mkdtemp(prefix="dp-"))
    try:
        suite = Suite(component("runc-suite"), scratch, tools)
        settings = Settings.make(scratch, tools)
        ours = scratch / "runc"  # the suite looks for the runtime's name in help texts
        ours.symlink_to(install().runtime)
        runtimes = {"runc": tools.find("runc"), "diapause-runc": ours}
        client = Client(component("containerd-suite"), scratch, tools, suite.stand_ins)

        def run(label: str, runtime: Path, files: tuple[str, ...]) -> dict[str, str]:
            found = suite.run(label, runtime, settings.env, files=tuple(f for f in files if f != CLIENT))
            return found | (client.run(label, runtime, settings.env) if CLIENT in files else {})

        theirs, mine = compare(run, runtimes, tuple(options.files))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if options.record:
        EXPECTED.write_text(json.dumps(theirs, indent=1, sort_keys=True) + "\n")
        record(theirs, mine)
    return report(theirs, mine)


def compare(
    run: Callable[[str, Path, tuple[str, ...]], dict[str, str]],
    runtimes: dict[str, Path],
    files: tuple[str, ...],
) -> tuple[dict[str, str], dict[str, str]]:
    """Both runtimes; files in which they differ run again, and a test that passes once has passed."""
    results: tuple[dict[str, str], dict[str, str]] = ({}, {})
    for _ in range(3):
        for (label, runtime), known in zip(runtimes.items(), results, strict=True):
            print(f"the suites with {label}", file=sys.stderr)
            for name, result in run(label, runtime, files).items():
                if known.get(name) != "ok":
                    known[name] = result
        theirs, ours = results
        differing = {n.partition(":")[0] for n in theirs.keys() | ours.keys() if theirs.get(n) != ours.get(n)}
        files = tuple(f for f in files if f in differing)
        if not files:
            break
    return results


def report(theirs: dict[str, str], ours: dict[str, str]) -> int:
    expected = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
    differences = 0
    for name in sorted(theirs.keys() | ours.keys()):
        if ours.get(name) != theirs.get(name):
            differences += 1
            print(f"{name}: runc {theirs.get(name, 'missing')}, diapause-runc {ours.get(name, 'missing')}")
        elif name in expected and ours.get(name) != expected[name]:
            differences += 1
            print(f"{name}: {ours.get(name)} with both, expected {expected[name]}")
    print(f"{sum(v == 'ok' for v in ours.values())} ok, {sum(v == 'skip' for v in ours.values())} skipped, "
          f"{sum(v == 'not ok' for v in ours.values())} not ok; {differences} differences")  # fmt: skip
    return 1 if differences else 0


def record(theirs: dict[str, str], ours: dict[str, str]) -> None:
    """A dated page for docs/results."""
    git = ["git", "rev-parse", "--short", "HEAD"]
    revision = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    lines = [
        "# The tests of runc and containerd with diapause-runc", "",
        f"{datetime.date.today()}, revision {revision}, runc 1.5.3, containerd 2.4.2, kernel "
        f"{platform.release()}: {len(ours)} tests, with runc and with diapause-runc in one run",
        "(`make conformance`). `client` is containerd's test of checkpoint and restore, the rest runc's.", "",
        "| file | ok | skipped | not ok | same as runc |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for name in (*FILES, CLIENT):
        mine = {k: v for k, v in ours.items() if k.startswith(f"{name}: ")}
        counts = [sum(v == r for v in mine.values()) for r in ("ok", "skip", "not ok")]
        same = "yes" if all(theirs.get(k) == v for k, v in mine.items()) else "no"
        lines.append(f"| {name} | {counts[0]} | {counts[1]} | {counts[2]} | {same} |")
    failing = sorted(k for k, v in ours.items() if v == "not ok")
    if failing:
        lines += ["", "Not ok with both on this machine:" if all(theirs.get(k) == "not ok" for k in failing)
                  else "Not ok:", "", *(f"- {name}" for name in failing)]  # fmt: skip
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "conformance.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
