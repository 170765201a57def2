"""`make lint`: every linter is a test; what it prints is shown when it fails. Side by side."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import report

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent


def main() -> int:
    with ThreadPoolExecutor(max_workers=2) as pool:
        results = list(pool.map(lambda check: run(*check), checks()))
    failed = results.count(False)
    report.write("lint", report.Report(passed=len(results) - failed, failed=failed))
    return 1 if failed else 0


def checks() -> list[tuple[str, list[str]]]:
    """Name and command of each check, the slow ones first."""
    sources = tracked("*.c", "*.h")
    scripts = [*tracked("*.sh"), ".ci/run"]
    return [
        ("types of the package", ["mypy", *(f"-pdiapause.{name}" for name in ("runtime", "shim", "hooks"))]),
        ("types of .ci", ["mypy", *tracked(".ci/*.py")]),
        ("types of the toolbox", ["mypy", "integration/toolbox"]),
        ("imports go down only", ["lint-imports"]),
        ("ruff check", ["ruff", "check", "--quiet"]),
        ("ruff format", ["ruff", "format", "--check", "--diff", "--quiet"]),
        ("clang-format", ["clang-format", "--dry-run", "--Werror", *sources]),
        ("shellcheck", ["shellcheck", "--external-sources", "--source-path=integration/toolbox", *scripts]),
        ("licence lines", ["python", "-c", LICENCE, *sources, *scripts, *tracked("Makefile", "*.mk")]),
    ]


LICENCE = """
import sys
line = "SPDX-License-Identifier: Apache-2.0"
bad = [name for name in sys.argv[1:] if line not in open(name).read(300)]
sys.exit("\\n".join(f"{name}: no SPDX line at the top" for name in bad) or 0)
"""


def tracked(*patterns: str) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return [name for name in listed.stdout.splitlines() if (ROOT / name).exists()]


def run(name: str, command: list[str]) -> bool:
    started = time.monotonic()
    done = subprocess.run(
        [str(BIN / command[0]), *command[1:]], cwd=ROOT, check=False, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    good = done.returncode == 0
    report.say(
        f"  {'ok    ' if good else 'FAILED'} {name} ({time.monotonic() - started:.1f} s)"
        + ("" if good else f"\n{done.stdout}")
    )
    return good


if __name__ == "__main__":
    sys.exit(main())
