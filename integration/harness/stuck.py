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
            lines += _held_locks(entry)
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


def _held_locks(process: Path) -> list[str]:
    """The words of every lock that a thread waits for: a mutex of glibc names its owner in the third."""
    lines = []
    for task in sorted(process.glob("task/*")):
        words = _read(task / "syscall").split()
        if words[:1] not in (["202"], ["98"]):  # futex, on x86-64 and on aarch64
            continue
        try:
            with open(process / "mem", "rb", buffering=0) as memory:
                memory.seek(int(words[1], 16))
                found = memory.read(40)
        except OSError as error:
            lines.append(f"  {task.name} waits for {words[1]}: {error}")
            continue
        numbers = [int.from_bytes(found[at : at + 4], "little") for at in range(0, len(found), 4)]
        lines.append(f"  {task.name} waits for {words[1]}: {numbers}")
        lines += [f"    {line}" for line in _read(process / "maps").splitlines() if _holds(line, words[1])]
    return lines


def _holds(line: str, address: str) -> bool:
    low, _, high = line.split(maxsplit=1)[0].partition("-")
    return int(low, 16) <= int(address, 16) < int(high, 16)


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError as error:
        return os.strerror(error.errno or 0)
