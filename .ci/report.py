"""What a stage of `make test` found, where the next one can read it: JSON of ours or JUnit XML of pytest."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from xml.etree import ElementTree

RESULTS = Path(__file__).resolve().parents[1] / "build" / "results"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Counts of one stage."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Report) -> Report:
        return Report(
            passed=self.passed + other.passed,
            failed=self.failed + other.failed,
            skipped=self.skipped + other.skipped,
        )

    def __str__(self) -> str:
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} passed, {self.failed} failed{skipped}"


def forget(stage: str) -> None:
    for suffix in ("json", "xml"):
        (RESULTS / f"{stage}.{suffix}").unlink(missing_ok=True)


def write(stage: str, report: Report) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{stage}.json").write_text(json.dumps(asdict(report)) + "\n")


def read(stage: str) -> Report | None:
    """None if the stage did not get as far as a result."""
    try:
        if (path := RESULTS / f"{stage}.json").exists():
            return Report(**json.loads(path.read_text()))
        suites = ElementTree.parse(RESULTS / f"{stage}.xml").getroot().iter("testsuite")
    except (OSError, ValueError, ElementTree.ParseError):
        return None
    total = Report()
    for suite in suites:
        count = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
        failed = count["failures"] + count["errors"]
        total += Report(
            passed=count["tests"] - failed - count["skipped"], failed=failed, skipped=count["skipped"]
        )
    return total


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
