"""What was installed for an engine, so that uninstalling undoes that and nothing else."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field

from diapause.runtime.cli.runtime.edits.edit import Note
from diapause.runtime.cli.runtime.place import Place
from diapause.runtime.errors import FailedPrecondition, InvalidArgument
from diapause.runtime.linux.files import read_regular, write_atomic

VERSION = 1
LIMIT = 16 << 20  # bytes: it holds the files as they were


@dataclass(slots=True, kw_only=True)
class Record:
    """The notes of each file's edit, and the directories that were made."""

    engine: str
    notes: dict[str, Note] = field(default_factory=dict)
    directories: list[str] = field(default_factory=list)

    @classmethod
    def load(cls, place: Place, engine: str) -> Record:
        """An empty one where nothing was installed. Raises InvalidArgument for a file that is no record."""
        path = _path(place, engine)
        try:
            data = json.loads(read_regular(path, limit=LIMIT))
            if data["version"] != VERSION or data["engine"] != engine:
                raise ValueError(f"version {data['version']} of {data['engine']}")
            return cls(engine=engine, notes=dict(data["files"]), directories=list(data["directories"]))
        except FileNotFoundError:
            return cls(engine=engine)
        except (OSError, ValueError, KeyError, TypeError) as e:
            todo = "remove it, and take the engine's configuration back by hand"
            raise InvalidArgument("engine-record-malformed", path, str(e), todo) from None

    def store(self, place: Place) -> None:
        path = _path(place, self.engine)
        data = {
            "version": VERSION,
            "engine": self.engine,
            "files": self.notes,
            "directories": self.directories,
        }
        try:
            if not self.notes:
                if os.path.exists(path):
                    os.unlink(path)
                return
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            write_atomic(path, (json.dumps(data, indent=1) + "\n").encode())
        except OSError as e:
            why = f"{path}: {(e.strerror or str(e)).lower()}"
            todo = "see that the directory can be written and has room"
            raise FailedPrecondition(
                "engine-record-not-written", f"runtime {self.engine}", why, todo
            ) from None


def _path(place: Place, engine: str) -> str:
    return f"{place.records}/{engine}.json"
