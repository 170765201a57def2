"""The test files that need no fault injection, as they are, on the GPU of this machine.

The name of each test is printed when it begins, so that one which does not end can be seen.
"""

import os
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

from integration.hardware.options import Options

FILES = ("test_checkpoint.py", "test_unmanaged.py")
PATIENCE = 45  # seconds for a test; the longest that passed on an H200 took 8


def run(out: Path, options: Options) -> dict[str, object]:
    """Options: `k`, an expression of pytest's to choose tests by."""
    report = out / "workloads.xml"
    chosen = f" and ({options.text('k', '')})" if "k" in options.chosen else ""
    argv = [
        sys.executable, "-u", "-m", "pytest", "-v", "--import-mode=importlib", "-p", "no:cacheprovider",
        "--tb=short", "--timeout", str(PATIENCE), "--maxfail", "6", f"--junitxml={report}",
        "-k", f"not debian and not unified{chosen}", *(f"integration/tests/{name}" for name in FILES),
    ]  # fmt: skip
    status = _bounded(argv, options.left - 20)
    cases = list(ET.parse(report).iter("testcase")) if report.exists() else []
    failed = [c for c in cases if c.find("failure") is not None or c.find("error") is not None]
    result = {
        "ok": status == 0,
        "ended_early": status is None,
        "passed": len(cases) - len(failed),
        "failed": {c.get("name"): _text(c)[:1500] for c in failed},
        "seconds": {c.get("name"): round(float(c.get("time", 0)), 2) for c in cases},
    }
    report.unlink(missing_ok=True)
    return result


def _bounded(argv: list[str], seconds: float) -> int | None:
    """The exit status; None if the time was up: pytest is interrupted then and still writes its report."""
    process = subprocess.Popen(argv, env=os.environ)
    try:
        return process.wait(max(1.0, seconds))
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(10)
    return None


def _text(case: ET.Element) -> str:
    found = case.find("failure") if case.find("failure") is not None else case.find("error")
    return (found.get("message") or "") if found is not None else ""
