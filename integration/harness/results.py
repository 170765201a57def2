"""Dated results of what was tried with which versions, written where DIAPAUSE_RESULTS says."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from integration.harness.client import Client
from integration.harness.tools import Toolset

_KEY = ("client", "containerd", "runc", "what")


def version_of(program: Path) -> str:
    done = subprocess.run(
        [str(program), "--version"], capture_output=True, text=True, timeout=20, check=False
    )
    found = re.search(r"\d+\.\d+(\.\d+)?", done.stdout + done.stderr)
    return found[0] if found else "?"


@dataclass(frozen=True, slots=True)
class Subject:
    """A client and the pair behind it."""

    client: str
    version: str
    tools: Toolset
    containerd: bool = True

    @classmethod
    def of(cls, client: Client) -> Self:
        return cls(client.NAME, client.version, client.node.daemon.tools, client.NAME != "podman")

    @classmethod
    def ctr(cls, tools: Toolset) -> Self:
        return cls("ctr", version_of(tools.find("ctr")), tools)


class Results:
    """One entry for each client, pair and thing that was done; a later one replaces an earlier one."""

    def __init__(self, path: Path | None) -> None:
        self.path = path

    @contextmanager
    def cell(self, subject: Subject, what: str, *, cannot: str = "") -> Iterator[None]:
        """The body is the proof: an exception makes the entry a failure, with its reason.

        `cannot` says why the client is not able to do it, where the body proves that.
        """
        reason = cannot
        try:
            yield
        except BaseException as error:
            reason = str(error).splitlines()[0][:300] if str(error) else type(error).__name__
            raise
        finally:
            if self.path:
                self._add(self._entry(subject, what, reason, "cannot" if reason == cannot != "" else ""))

    def _entry(self, subject: Subject, what: str, reason: str, result: str) -> dict[str, str]:
        tools = subject.tools
        containerd = version_of(tools.find("containerd")) if subject.containerd else "none"
        return {
            "client": subject.client, "version": subject.version, "what": what,
            "containerd": containerd, "runc": version_of(tools.find("runc")),
            "criu": version_of(tools.find("criu")), "kernel": platform.release().partition("-")[0],
            "gpu": "software", "date": time.strftime("%Y-%m-%d"),
            "result": result or ("fails" if reason else "works"), "reason": reason,
        }  # fmt: skip

    def _add(self, entry: dict[str, str]) -> None:
        assert self.path is not None
        known: list[dict[str, Any]] = json.loads(self.path.read_text()) if self.path.exists() else []
        rest = [old for old in known if any(old[key] != entry[key] for key in _KEY)]
        text = json.dumps(sorted([*rest, entry], key=lambda e: [e[key] for key in _KEY]), indent=1)
        self.path.write_text(text + "\n")


def from_environment() -> Results:
    path = os.environ.get("DIAPAUSE_RESULTS")
    return Results(Path(path) if path else None)
