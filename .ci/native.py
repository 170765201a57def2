"""Runs the C test programs: status 0 passed, 77 skipped, everything else failed, as its output says."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import report

TIMEOUT = 120  # seconds


def main(native: Path) -> int:
    total = report.Report()
    for program in sorted(path for path in (native / "tests").glob("*") if os.access(path, os.X_OK)):
        total += run(program, native)
    report.write("native", total)
    return 1 if total.failed or not total.passed else 0


def run(program: Path, native: Path) -> report.Report:
    """One program on the software GPU, with the folder of the build as its argument."""
    env = {**os.environ, "LD_LIBRARY_PATH": str(native / "softgpu")}
    started = time.monotonic()
    try:
        done = subprocess.run(
            [program, native], check=False, env=env, timeout=TIMEOUT, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        )  # fmt: skip
        status, output = done.returncode, done.stdout
    except subprocess.TimeoutExpired as expired:
        status, output = 124, (expired.output or b"").decode(errors="replace") + f"\nno end after {TIMEOUT} s"
    word = {0: "ok", 77: "skip"}.get(status, "FAILED")
    report.say(f"  {word:<6} {program.name} ({time.monotonic() - started:.1f} s)")
    if word != "ok":
        report.say(f"{output.rstrip()}\n  status {status}")
    return report.Report(passed=int(word == "ok"), failed=int(word == "FAILED"), skipped=int(word == "skip"))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
