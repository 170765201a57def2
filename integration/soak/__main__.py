"""`make soak`: fails when something grew or a kill was not survived. --record writes docs/results/soak.md."""

import argparse
import datetime
import json
import platform
import subprocess
import sys
import time

from integration.harness.tools import ROOT
from integration.soak import kills, rounds


def main() -> int:
    arguments = argparse.ArgumentParser(prog="soak", description=__doc__)
    arguments.add_argument("--rounds", type=int, default=50)
    arguments.add_argument("--kills", type=int, default=100)
    arguments.add_argument("--seed", type=int, default=int(time.time()), help="of the moments of the kills")
    arguments.add_argument("--record", action="store_true")
    options = arguments.parse_args()
    start = time.monotonic()
    print(f"{options.rounds} rounds", file=sys.stderr)
    growth = rounds.run(options.rounds) if options.rounds else {"grown": []}
    print(f"{options.kills} kills, seed {options.seed}", file=sys.stderr)
    killed = kills.run(options.kills, seed=options.seed) if options.kills else {"failures": []}
    result = {"rounds": growth, "kills": killed, "minutes": round((time.monotonic() - start) / 60, 1)}
    output = ROOT / "build/results/soak.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))
    if options.record:
        record(growth, killed)
    return 1 if growth["grown"] or killed["failures"] else 0


def record(growth: dict[str, object], killed: dict[str, object]) -> None:
    """A dated page for docs/results."""
    git = ["git", "rev-parse", "--short", "HEAD"]
    revision = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    first, last = growth["first"], growth["last"]
    assert isinstance(first, dict)
    assert isinstance(last, dict)
    outcomes = dict(killed["outcomes"])  # type: ignore[call-overload]
    lines = [
        "# Soak",
        "",
        f"{datetime.date.today()}, revision {revision}, software GPU, containerd 2.4, runc 1.5,",
        f"kernel {platform.release()} (`make soak`).",
        "",
        f"{growth['rounds']} rounds of checkpoint, remove, restore through `ctr`; every value was right.",
        "",
        f"| | after round {rounds.WARM} | after the last |",
        "|---|---|---|",
        *(f"| {name} | {first[name]} | {last[name]} |" for name in first),
        "",
        f"Grown: {growth['grown'] or 'nothing'}.",
        "",
        f"{killed['kills']} times kill -9 of diapause-runc, of its engine or of both, at a random moment of",
        f"a dump or a restore (seed {killed['seed']}):",
        "",
        *(f"- {name}: {count}" for name, count in sorted(outcomes.items())),
        "",
        f"Failures: {killed['failures'] or 'none'}.",
    ]
    folder = ROOT / "docs/results"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "soak.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
