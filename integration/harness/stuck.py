"""What everybody waits for, when an operation does not come back."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def told_after(seconds: float, words: tuple[str, ...], folder: Path) -> Iterator[None]:
    """Print what the threads of some processes do, and small files of `folder`, if the body takes longer.

    A process counts if one of `words` is in its command line.
    """
    timer = threading.Timer(seconds, lambda: print(_report(words, folder), flush=True))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _report(words: tuple[str, ...], folder: Path) -> str:
    lines = []
    for entry in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        command = _read(entry / "cmdline").replace("\0", " ")
        if any(word in command for word in words):
            lines.append(f"{entry.name} {command[:200]}")
            lines += [f"  {_thread(task)}" for task in sorted(entry.glob("task/*"))]
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.stat().st_size < 65536:
            lines.append(f"== {path}\n{_read(path)[-4096:]}")
    return "\n".join(lines)


def _thread(task: Path) -> str:
    state = next((x[7:] for x in _read(task / "status").splitlines() if x.startswith("State:")), "")
    words = (
        _read(task / name).strip().replace("\n", " < ") for name in ("comm", "wchan", "syscall", "stack")
    )
    return " ".join((task.name, state, *words))


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError as error:
        return os.strerror(error.errno or 0)
