"""Runs stages of the Makefile one after the other; ends with the sum of their results on one line.

A stage that breaks does not keep the next one from running, and one that leaves no result has failed.
"""

from __future__ import annotations

import subprocess
import sys
import time

import report


def main(stages: list[str]) -> int:
    total, rows = report.Report(), []
    for stage in stages:
        report.forget(stage)
        report.say(f"── {stage} " + "─" * (70 - len(stage)))
        started = time.monotonic()
        status = subprocess.call(["make", "--no-print-directory", stage])
        result = judge(report.read(stage), status)
        rows.append(f"  {stage:<12} {time.monotonic() - started:6.1f} s  {result}")
        total += result
    report.say("─" * 74)
    report.say("\n".join(rows))
    report.say(str(total))
    return 0 if not total.failed else 1


def judge(found: report.Report | None, status: int) -> report.Report:
    """The result that counts: a failure nobody counted is one more, and no test at all is no success."""
    if found is None or not found.passed + found.failed:
        return report.Report(failed=1)
    if status and not found.failed:
        return found + report.Report(failed=1)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
