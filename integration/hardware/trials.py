"""Results of a section, one by one: what is done is in the file even if the section is ended."""

import json
import os
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from integration.hardware.options import Options

KEPT = 4000  # characters of an error


class Skipped(Exception):
    """This cannot be tried here; the text is the reason."""


class Trials:
    """Entries of OUT/<section>.json; `add` and `trial` may be called from several threads."""

    def __init__(self, out: Path, options: Options) -> None:
        self._path = out / f"{options.name}.json"
        self._options = options
        self._lock = threading.Lock()
        self._entries: dict[str, dict[str, object]] = {}
        self._more: dict[str, object] = {}

    def trial(self, name: str, call: Callable[[], dict[str, object]], *, needs: float = 20) -> bool:
        """Run a call if `needs` seconds are left, note what it returns or how it failed; return success."""
        if self._options.left < needs:
            self.add(name, {"ok": False, "error": f"not run: {self._options.left:.0f} s left"})
            return False
        print(f"--- {name}", flush=True)
        start = time.monotonic()
        try:
            result: dict[str, object] = {"ok": True, **call()}
        except Skipped as skipped:
            result = {"ok": True, "skipped": str(skipped)}
        except Exception as error:
            traceback.print_exc()
            result = {"ok": False, "error": f"{type(error).__name__}: {error}"[:KEPT]}
        self.add(name, {**result, "seconds": round(time.monotonic() - start, 2)})
        return bool(result["ok"])

    def add(self, name: str, entry: dict[str, object]) -> None:
        with self._lock:
            self._entries[name] = entry
            self._write()
        print(f"{'ok  ' if entry.get('ok', True) else 'FAIL'} {name} {json.dumps(entry)[:600]}", flush=True)

    def note(self, **more: object) -> None:
        """Facts about the whole section."""
        with self._lock:
            self._more |= more
            self._write()

    def result(self) -> dict[str, object]:
        failed = [name for name, entry in self._entries.items() if not entry.get("ok", True)]
        skipped = {n: str(e["skipped"]) for n, e in self._entries.items() if "skipped" in e}
        return {
            "ok": not failed and bool(self._entries),
            "failed": failed,
            "skipped": skipped,
            **self._more,
            "entries": self._entries,
        }

    def _write(self) -> None:
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps(self.result(), indent=1) + "\n")
        os.replace(new, self._path)
