"""Running the tools that fetch and unpack: output into a log, its last lines into the error."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from diapause.runtime.errors import FailedPrecondition, Internal

_TAIL = 3  # lines of the log that an error carries
_WIDTH = 200  # characters of each


class Tool:
    """Runs programs for one component."""

    def __init__(self, what: str, log: Path) -> None:
        self.what = what  # "component criu"
        self.log = log
        log.write_bytes(b"")

    def run(
        self, argv: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None,
        quiet: bool = False,
    ) -> str:  # fmt: skip
        """Run a program to its end and return its stdout; with `quiet` the log gets stderr only.

        There is no deadline: a slow network is not an error, and the user sees which step takes long.
        """
        with self.log.open("ab") as log:
            log.write(f"$ {' '.join(argv)}\n".encode())
            log.flush()
            try:
                done = subprocess.run(
                    argv, cwd=cwd, env={**os.environ, "LC_ALL": "C", **(env or {})}, check=False,
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE if quiet else log, stderr=log,
                )  # fmt: skip
            except FileNotFoundError as error:
                raise FailedPrecondition(
                    "tool-missing", self.what, f"{argv[0]} is not on this machine",
                    f"install {argv[0]} and try again",
                ) from error  # fmt: skip
        if done.returncode:
            why = f"{Path(argv[0]).name} ended with status {done.returncode}: {self.tail()}"
            todo = "run the same command again: it goes on where it stopped"
            raise Internal("component-failed", self.what, why, todo, log=str(self.log))
        return done.stdout.decode() if quiet else ""

    def tail(self) -> str:
        lines = [line.strip() for line in self.log.read_text(errors="replace").splitlines()]
        last = [line for line in lines if line and not line.startswith("$ ")][-_TAIL:]
        return " / ".join(line if len(line) < _WIDTH else f"…{line[-_WIDTH:]}" for line in last)
