"""The runner: each section in a process group of its own, under its own time limit.

A section may have options: `random:count=100,engine=driver`. `limit=SECONDS` is known to all.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from integration.hardware.options import Options, parse

LIMITS = {  # seconds; what a section has when it ends early is not given to others
    "machine": 40,
    "contract": 150,
    "workloads": 240,
    "poller": 100,
    "phases": 160,
    "training": 150,
    "conformance": 150,
    "intercept": 330,
    "torch": 480,
    "random": 480,
    "speed": 540,
}
USUAL = ("machine", "contract", "workloads", "poller", "phases", "training")  # without arguments
TOTAL = 570  # seconds for all of them
MARGIN = 8  # seconds before its limit at which a section stops to begin new things


def main() -> int:
    arguments = argparse.ArgumentParser(prog="hardware")
    arguments.add_argument("--out", type=Path, required=True)
    arguments.add_argument("--software", action="store_true", help="rehearse on the software GPU")
    arguments.add_argument("--one", type=float, metavar="SECONDS", help="run the named section here")
    arguments.add_argument("sections", nargs="*", default=list(USUAL), help=", ".join(LIMITS))
    options = arguments.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.software:
        os.environ["DIAPAUSE_TEST_GPU"] = "real"
    sections = [parse(text) for text in options.sections]
    for name, _ in sections:
        if name not in LIMITS:
            arguments.error(f"no section {name}; there are {', '.join(LIMITS)}")
    if options.one:
        return _here(*sections[0], options.out, options.one)
    return _all(sections, options.out, software=options.software)


def _all(sections: list[tuple[str, dict[str, str]]], out: Path, *, software: bool) -> int:
    lines = []
    failures = 0
    end = time.monotonic() + TOTAL
    for name, chosen in sections:
        start = time.monotonic()
        limit = min(float(chosen.get("limit", LIMITS[name])), end - start)
        text = ":".join([name, *[",".join(f"{k}={v}" for k, v in chosen.items())] * bool(chosen)])
        verdict = _section(name, text, out, limit, software=software) if limit > 5 else "no time left"
        failures += verdict != "ok"
        lines.append(f"{text:<10} {time.monotonic() - start:6.1f} s  {verdict}")
        print(lines[-1], flush=True)
        (out / "summary.txt").write_text("\n".join(lines) + "\n")
    return failures


def _section(name: str, text: str, out: Path, limit: float, *, software: bool) -> str:
    """Run a section; return "ok" or what went wrong."""
    argv = [sys.executable, "-m", "integration.hardware", "--one", f"{limit:.0f}", "--out", str(out), text]
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
                process.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(10)
            return f"not done after {limit:.0f} s"
    return "ok" if status == 0 else f"failed ({status})"


def _here(name: str, chosen: dict[str, str], out: Path, limit: float) -> int:
    from importlib import import_module

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    options = Options(name=name, chosen=chosen, end=time.monotonic() + limit - MARGIN)
    result = import_module(f"integration.hardware.{name}").run(out, options)
    if result is not None:
        (out / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
        print(json.dumps(result, indent=1)[:20000])
    return 0 if result is None or result.get("ok", True) else 1


if __name__ == "__main__":
    sys.exit(main())
