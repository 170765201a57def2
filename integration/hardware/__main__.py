"""The runner: each section in a process group of its own, under its own time limit."""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

LIMITS = {  # seconds; what a section has when it ends early is not given to others
    "machine": 40,
    "contract": 150,
    "workloads": 170,
    "poller": 100,
    "phases": 90,
    "training": 150,
}
TOTAL = 570


def main() -> int:
    arguments = argparse.ArgumentParser(prog="hardware")
    arguments.add_argument("--out", type=Path, required=True)
    arguments.add_argument("--software", action="store_true", help="rehearse on the software GPU")
    arguments.add_argument("--one", action="store_true", help="run the named section here")
    arguments.add_argument("sections", nargs="*", default=list(LIMITS))
    options = arguments.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.software:
        os.environ["DIAPAUSE_TEST_GPU"] = "real"
    if options.one:
        return _here(options.sections[0], options.out)
    lines = []
    failures = 0
    end = time.monotonic() + TOTAL
    for name in options.sections:
        start = time.monotonic()
        limit = min(LIMITS[name], end - start)
        verdict = (
            _section(name, options.out, limit, software=options.software) if limit > 5 else "no time left"
        )
        failures += verdict != "ok"
        lines.append(f"{name:<10} {time.monotonic() - start:6.1f} s  {verdict}")
        print(lines[-1], flush=True)
        (options.out / "summary.txt").write_text("\n".join(lines) + "\n")
    return failures


def _section(name: str, out: Path, limit: float, *, software: bool) -> str:
    """Run a section; return "ok" or what went wrong."""
    argv = [sys.executable, "-m", "integration.hardware", "--one", "--out", str(out), name]
    argv += ["--software"] if software else []
    with (out / "log.txt").open("ab") as log:
        log.write(f"\n===== {name}\n".encode())
        log.flush()
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)  # its fixtures end containerd
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(10)
            return f"not done after {limit:.0f} s"
    return "ok" if status == 0 else f"failed ({status})"


def _here(name: str, out: Path) -> int:
    from importlib import import_module

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    result = import_module(f"integration.hardware.{name}").run(out)
    if result is not None:
        (out / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
        print(json.dumps(result, indent=1))
    return 0 if result is None or result.get("ok", True) else 1


if __name__ == "__main__":
    sys.exit(main())
