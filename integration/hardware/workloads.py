"""The test files that need no fault injection, as they are, on the GPU of this machine."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

FILES = ("test_checkpoint.py", "test_unmanaged.py")


def run(out: Path) -> dict[str, object]:
    report = out / "workloads.xml"
    argv = [
        sys.executable, "-m", "pytest", "-q", "--import-mode=importlib", "-p", "no:cacheprovider",
        "--timeout", "90",
        "--maxfail", "6", "-k", "not debian and not unified", f"--junitxml={report}",
        *(f"integration/tests/{name}" for name in FILES),
    ]  # fmt: skip
    status = subprocess.run(argv, env=os.environ, timeout=600, check=False).returncode
    cases = list(ET.parse(report).iter("testcase"))
    failed = [c for c in cases if c.find("failure") is not None or c.find("error") is not None]
    return {
        "ok": status == 0,
        "passed": len(cases) - len(failed),
        "failed": {c.get("name"): _text(c)[:1500] for c in failed},
        "seconds": {c.get("name"): round(float(c.get("time", 0)), 2) for c in cases},
    }


def _text(case: ET.Element) -> str:
    found = case.find("failure") if case.find("failure") is not None else case.find("error")
    return (found.get("message") or "") if found is not None else ""
