"""A directory that is the file system of a node, and the command on it."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from diapause.runtime.cli.runtime.command import runtime

PROGRAM = "/usr/local/bin/diapause-runc"


class Node:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.stderr = ""

    def __call__(self, *words: str, status: int = 0) -> str:
        """Run the command below the root; returns stdout."""
        done = CliRunner().invoke(runtime, [*words, "--root", str(self.root)], catch_exceptions=False)
        self.stderr = done.stderr
        assert done.exit_code == status, done.output
        return done.stdout

    def install(self, engine: str, *words: str) -> str:
        return self("install", "--engine", engine, *words)

    def uninstall(self, engine: str, *words: str) -> str:
        return self("uninstall", "--engine", engine, *words)

    def facts(self, engine: str, *, status: int = 0) -> dict[str, Any]:
        found = json.loads(self("status", "--engine", engine, "--json", status=status))[engine]
        return {fact["name"]: (fact["value"], fact["good"]) for fact in found}

    def path(self, name: str) -> Path:
        return self.root / name.lstrip("/")

    def write(self, name: str, text: str) -> Path:
        self.path(name).parent.mkdir(parents=True, exist_ok=True)
        self.path(name).write_text(text)
        return self.path(name)

    def files(self) -> dict[str, str]:
        """Everything below the root: directories, links and the text of files."""
        return {
            str(path.relative_to(self.root)): f"→ {path.readlink()}"
            if path.is_symlink()
            else path.read_text()
            if path.is_file()
            else ""
            for path in sorted(self.root.rglob("*"))
            if "var" not in path.relative_to(self.root).parts
        }


@pytest.fixture
def node(host: Path) -> Node:
    (host / "root").mkdir()
    return Node(host / "root")
