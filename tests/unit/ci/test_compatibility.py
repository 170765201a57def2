"""docs/compatibility.md has the tables that its results give."""

import json
from pathlib import Path

import pytest

from integration.compatibility import BEGIN, END, PAGE, RESULTS, filled, table

ENTRY = {
    "client": "docker", "version": "27.5.1", "what": "exit", "containerd": "2.4.2", "runc": "1.5.3",
    "criu": "4.2.1", "kernel": "6.18.44", "gpu": "software", "date": "2026-12-01",
    "result": "works", "reason": "",
}  # fmt: skip


def test_the_page_is_what_its_results_give() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert filled(page, json.loads(RESULTS.read_text(encoding="utf-8"))) == page


def test_what_was_not_run_says_so_and_what_fails_says_why() -> None:
    old = {**ENTRY, "containerd": "1.6.20", "runc": "1.1.5", "client": "ctr", "version": "1.6.20"}
    failed = {**old, "result": "fails", "reason": "a | b"}

    lines = table([ENTRY, failed]).splitlines()

    assert lines[0] == "| client | what | containerd 1.6.20, runc 1.1.5 | containerd 2.4.2, runc 1.5.3 |"
    assert lines[2].endswith(r"| **fails**: a \| b, 2026-12-01 | not run |")
    assert lines[3].endswith("| not run | works (27.5.1), 2026-12-01 |")


def test_a_client_without_containerd_has_columns_of_its_own() -> None:
    own = {**ENTRY, "client": "podman", "version": "4.3.1", "containerd": "none"}

    lines = table([ENTRY, own]).splitlines()

    assert lines[0] == "| client | what | runc 1.5.3 | containerd 2.4.2, runc 1.5.3 |"
    assert lines[2].endswith("| - | works (27.5.1), 2026-12-01 |")
    assert lines[3].endswith("| works (4.3.1), 2026-12-01 | - |")


def test_a_page_without_the_markers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="clients: begin"):
        filled("# Compatibility\n", [ENTRY])
    assert filled(f"a\n{BEGIN}old\n{END}b\n", [ENTRY]).endswith(f"{END}b\n")
