"""How much memory of this machine something takes at its peak."""

import re
import shutil
import subprocess
import threading
from pathlib import Path

PERIOD = 0.02  # seconds


class Peak:
    """`with Peak() as peak:`; then `peak.bytes` says how much more was taken than at the start."""

    def __init__(self) -> None:
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._start = self._lowest = available()

    @property
    def bytes(self) -> int:
        return max(0, self._start - self._lowest)

    def __enter__(self) -> "Peak":
        self._thread.start()
        return self

    def __exit__(self, *unused: object) -> None:
        self._ending.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ending.wait(PERIOD):
            self._lowest = min(self._lowest, available())


def touch(folder: Path, bytes_: int) -> None:
    """Use so many bytes below a folder in memory, and give them back: a virtual machine may get its memory
    only as it is touched, and what is measured first would wait for that."""
    folder.mkdir()
    writers = 4
    count = bytes_ // writers >> 24
    processes = [
        subprocess.Popen(
            ["dd", "if=/dev/zero", f"of={folder}/{number}", "bs=16M", f"count={count}", "status=none"]
        )
        for number in range(writers)
    ]
    for process in processes:
        process.wait(120)
    shutil.rmtree(folder)


def available() -> int:
    """Bytes that programs could still be given, by the kernel's estimate."""
    found = re.search(r"^MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text(), re.M)
    return int(found[1]) * 1024 if found else 0
