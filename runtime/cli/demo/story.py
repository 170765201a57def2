"""What a person reads: what happened, the commands that did it; colours on a terminal only."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TextIO

_INDENT = " " * 23
_COLUMNS = 84  # of a command line


class Story:
    """Tells the run as it goes. Progress and notices belong to stderr, the story to stdout."""

    def __init__(self, out: TextIO = sys.stdout) -> None:
        self._out = out
        self._colour = out.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
        self.seconds: dict[str, float] = {}  # of each phase, by its name

    def title(self, text: str) -> None:
        self._write(f"\n{self._paint('1', text)}\n")

    def tell(self, name: str, text: str, *commands: Sequence[str]) -> None:
        """What happened, the time of the phase of that name, and the commands that did it."""
        seconds = self.seconds.get(name)
        took = "" if seconds is None else f"{seconds:6.2f} s"
        self._write(f"  {self._paint('32', f'{name:<11}')}{took:<10}{text}")
        for argv in commands:
            for line in _wrapped(argv):
                self._write(f"{_INDENT}{self._paint('2', line)}")

    def more(self, text: str) -> None:
        self._write(f"{_INDENT}{text}")

    def end(self, *lines: str) -> None:
        self._write("\n" + "\n".join(lines))

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        started = monotonic()
        yield
        self.seconds[name] = monotonic() - started

    def _paint(self, code: str, text: str) -> str:
        return f"\033[{code}m{text}\033[0m" if self._colour else text

    def _write(self, text: str) -> None:
        print(text, file=self._out, flush=True)


def _wrapped(argv: Sequence[str]) -> Iterator[str]:
    """A command line as a shell takes it, on lines of a readable length; a flag stays with its value."""
    words = [shlex.quote(word) for word in argv]
    line = "$"
    for number, word in enumerate(words):
        pair = " ".join(words[number : number + 2]) if word.startswith("--") else word
        if len(line) + len(pair) >= _COLUMNS and not words[number - 1].startswith("--"):
            yield f"{line} \\"
            line = "     "
        line += f" {word}"
    yield line
