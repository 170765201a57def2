"""docs/errors.md and the sources know the same error codes, and each code means one thing."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from diapause.runtime import errors

ROOT = Path(__file__).resolve().parents[2]
CODE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
ENDING = re.compile(r"\[([a-z0-9]+(?:-[a-z0-9]+)*)\]$")  # a message that was written out
C_ENDING = re.compile(r"\[([a-z0-9]+(?:-[a-z0-9]+)+)\]\"")
ROW = re.compile(r"^\| `([^`]+)` \| (.+) \| (.+) \|$", re.M)
KINDS = {name for name, value in vars(errors).items() if isinstance(value, type)}

# Codes that several modules raise, and why that is one meaning with one remedy.
SHARED = {
    "component-failed": "every recipe fails in the same words",
    "container-busy": "there is one lock",
    "container-missing": "runc never knew it, or has just forgotten it",
    "counter-stopped": "the demo notices it in two ways",
    "criu-missing": "not in PATH, or not where [criu] path says",
    "demo-failed": "the demo runs two programs",
    "device-missing": "by its node, and by its number",
    "gpu-data-missing": "whoever looks finds it missing: the store before, the controller while it reads",
    "gpu-data-short": "likewise",
    "gpu-not-requested": "seen in the specification, and in what was made of it",
    "hook-usage": "C and Python parse the same arguments",
    "libcuda-missing": "searched for, or named by a CDI specification",
    "libcuda-target-missing": "the verb looks, and the engine trusts nobody",
    "manifest-malformed": "a recipe is checked where it is used",
    "no-space": "seen for CRIU's part and for the GPU data, in one directory",
    "os-error": "what the system says, of a verb of runc and of a command",
    "python-missing": "for the runtime and for the hook",
    "resume-failed": "at once, or when the recovery of a dead engine fails as well",
    "runtime-not-found": "found before the start, and at it",
    "snapshot-bad-file": "the manifest is read twice",
    "snapshot-malformed": "the manifest is read twice",
    "state-malformed": "the hook reads the file without a container",
}


class Use(NamedTuple):
    code: str
    module: str
    kind: str  # of the exception, "" for a message without one


def in_python() -> Iterator[Use]:
    for folder in ("runtime", "hooks", "shim"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            module = str(path.relative_to(ROOT))
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for node in ast.walk(tree):
                yield from uses_of(node, module)


def uses_of(node: ast.AST, module: str) -> Iterator[Use]:
    if isinstance(node, ast.Call) and (kind := name_of(node.func)) in KINDS:
        first = node.args[0] if node.args else None
        if isinstance(first, ast.Attribute) and first.attr == "code":
            return  # raised again, with the code it had
        assert isinstance(first, ast.Constant), f"{module}:{node.lineno}: the code is not written out"
        yield Use(str(first.value), module, kind)
    elif isinstance(node, ast.Constant) and (found := ENDING.search(str(node.value))):
        yield Use(found[1], module, "")


def name_of(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def in_c() -> Iterator[Use]:
    for path in sorted((ROOT / "native").rglob("*.[ch]")):
        for code in C_ENDING.findall(path.read_text(encoding="utf-8")):
            yield Use(code, str(path.relative_to(ROOT)), "")


USES = [*in_python(), *in_c()]
DOCUMENTED = ROW.findall((ROOT / "docs" / "errors.md").read_text(encoding="utf-8"))


def test_the_search_finds_codes_of_every_form() -> None:
    found = {use.code for use in USES}
    assert {"criu-failed", "hook-usage", "os-error", "internal", "runtime-loop"} <= found
    assert len(found) > 80


def test_every_code_is_lower_case_with_dashes() -> None:
    assert [use for use in USES if not CODE.fullmatch(use.code)] == []


def test_every_code_of_the_sources_is_documented() -> None:
    documented = {code for code, _, _ in DOCUMENTED}
    missing = {use for use in USES if use.code not in documented}
    assert missing == set()


def test_every_documented_code_can_be_raised() -> None:
    found = {use.code for use in USES}
    assert [code for code, _, _ in DOCUMENTED if code not in found] == []


def test_the_codes_of_a_table_are_sorted_and_stand_there_once() -> None:
    codes = [code for code, _, _ in DOCUMENTED]
    assert len(codes) == len(set(codes))
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    for section in text.split("\n## "):
        there = [code for code, _, _ in ROW.findall(section)]
        assert there == sorted(there)


def test_the_codes_in_the_format_of_snapshots_exist() -> None:
    text = (ROOT / "docs" / "snapshot-format.md").read_text(encoding="utf-8")
    rows = [line.split("|")[2] for line in text.splitlines() if line.count("|") == 4]
    named = {code for cell in rows for code in re.findall(r"`([a-z]+-[a-z-]+)`", cell)}

    assert {"snapshot-missing", "driver-differs"} <= named
    assert named - {use.code for use in USES} == set()


@pytest.mark.parametrize("code", sorted({use.code for use in USES}))
def test_a_code_has_one_meaning(code: str) -> None:
    """Mechanically: one kind of error, and one module unless there is a reason."""
    uses = [use for use in USES if use.code == code]
    kinds = {use.kind for use in uses if use.kind}
    modules = {use.module for use in uses}

    assert len(kinds) <= 1
    assert len(modules) == 1 or code in SHARED, modules


def test_the_reasons_are_all_needed() -> None:
    modules = defaultdict(set)
    for use in USES:
        modules[use.code].add(use.module)
    assert [code for code in SHARED if len(modules[code]) < 2] == []
