"""`python -m integration.compatibility`: write the tables of docs/compatibility.md from dated results.

The results (docs/results/clients.json) are written by tests of clients, if DIAPAUSE_RESULTS names the file.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs/results/clients.json"
PAGE = ROOT / "docs/compatibility.md"
BEGIN, END = "<!-- clients: begin -->\n", "<!-- clients: end -->\n"

Entry = Mapping[str, str]
WHAT = {
    "exit": "checkpoint with exit, start from it",
    "leave-running": "left running",
}


def main() -> int:
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(filled(page, json.loads(RESULTS.read_text(encoding="utf-8"))), encoding="utf-8")
    return 0


def filled(page: str, entries: Sequence[Entry]) -> str:
    """The page with the table between its markers."""
    pattern = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.S)
    if not pattern.search(page):
        raise ValueError(f"no {BEGIN.strip()} in the page")
    return pattern.sub(lambda _: BEGIN + table(entries) + END, page)


def table(entries: Sequence[Entry]) -> str:
    pairs = sorted({(entry["containerd"], entry["runc"]) for entry in entries}, key=_by_version)
    heads = [f"{'' if ctd == 'none' else f'containerd {ctd}, '}runc {runc}" for ctd, runc in pairs]
    lines = [f"| client | what | {' | '.join(heads)} |", "|---" * (2 + len(pairs)) + "|"]
    for client in sorted({entry["client"] for entry in entries}):
        for what in sorted({entry["what"] for entry in entries if entry["client"] == client}):
            cells = [_cell(entries, client, what, pair) for pair in pairs]
            lines.append(f"| {client} | {WHAT.get(what, what)} | {' | '.join(cells)} |")
    hosts = sorted({f"CRIU {e['criu']}, Linux {e['kernel']}, {e['gpu']} GPU" for e in entries})
    return "\n".join([*lines, "", f"All with {'; '.join(hosts)}.", ""])


def _cell(entries: Sequence[Entry], client: str, what: str, pair: tuple[str, str]) -> str:
    found = [
        entry
        for entry in entries
        if (entry["client"], entry["what"], entry["containerd"], entry["runc"]) == (client, what, *pair)
    ]
    if not found:
        uses = {entry["containerd"] != "none" for entry in entries if entry["client"] == client}
        return "not run" if (pair[0] != "none") in uses else "-"
    entry = found[0]
    version = "" if entry["version"] == pair[0] else f" ({entry['version']})"
    if entry["result"] == "works":
        return f"works{version}, {entry['date']}"
    reason = entry["reason"].replace("|", "\\|")
    return f"**{entry['result']}**{version}: {reason}, {entry['date']}"


def _by_version(pair: tuple[str, str]) -> list[list[int]]:
    return [[int(number) for number in re.findall(r"\d+", text)] for text in pair]


if __name__ == "__main__":
    sys.exit(main())
