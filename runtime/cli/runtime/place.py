"""The file system that an engine is configured in: this host's, or a directory that will be one."""

from __future__ import annotations

import os
import stat

from diapause.runtime.container import state_dir
from diapause.runtime.errors import FailedPrecondition, InvalidArgument
from diapause.runtime.linux.files import read_regular, replace_link, write_atomic

LIMIT = 4 << 20  # bytes: no engine's configuration comes near
LINK = "link to "  # how the content of a symbolic link is written down


class Place:
    """Paths are the engine's; `root` is put in front of them."""

    def __init__(self, root: str = "/") -> None:
        self.root = os.path.realpath(root)
        if not os.path.isdir(self.root):
            raise InvalidArgument(
                "root-missing", f"root {root}", "it is no directory", "name one that exists"
            )

    @property
    def is_host(self) -> bool:
        return self.root == "/"

    @property
    def records(self) -> str:
        """The directory of the records of what was installed, as a path of this host."""
        return f"{state_dir() if self.is_host else self.outside('/var/lib/diapause')}/runtime"

    def outside(self, path: str) -> str:
        """The same path as this host has it."""
        return path if self.is_host else os.path.normpath(f"{self.root}/{path}")

    def target(self, path: str) -> str:
        """The file behind links, the one to change. Raises InvalidArgument if it is not below the root."""
        real = os.path.realpath(self.outside(path))
        if not self.is_host and not real.startswith(f"{self.root}/"):
            why = f"it is a link to {real}, which is not below {self.root}"
            raise InvalidArgument("root-left", path, why, "replace the link by a file")
        return real

    def exists(self, path: str) -> bool:
        return os.path.lexists(self.outside(path))

    def read(self, path: str) -> str | None:
        """The text of a file, None where there is none."""
        try:
            return read_regular(self.target(path), limit=LIMIT).decode()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as e:
            why = "it is no UTF-8" if isinstance(e, ValueError) else (e.strerror or str(e)).lower()
            raise InvalidArgument(
                "engine-config-unreadable", path, why, "put a readable file there"
            ) from None

    def read_link(self, path: str) -> str | None:
        """`link to TARGET` of a link; a file of another kind says what it is."""
        try:
            status = os.lstat(self.outside(path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return f"{LINK}{os.readlink(self.outside(path))}" if stat.S_ISLNK(status.st_mode) else "a file"

    def refuse_unwritable(self, path: str, *, link: bool) -> None:
        """Before anything is changed: a directory that cannot be written, a file system that is read-only."""
        there = self.target(os.path.dirname(path)) if link else os.path.dirname(self.target(path))
        while not os.path.exists(there):
            there = os.path.dirname(there)
        if not os.path.isdir(there):
            raise _not_written(path, f"{there} is no directory")
        if not os.access(there, os.W_OK | os.X_OK):
            raise _not_written(path, f"{there} cannot be written")

    def write(self, path: str, content: str, *, mode: int = 0o644) -> None:
        """Replace the file in one step; owner and mode of one that was there stay."""
        try:
            if content.startswith(LINK):
                return replace_link(self.outside(path), content.removeprefix(LINK))
            real = self.target(path)
            before = os.stat(real) if os.path.exists(real) else None
            write_atomic(real, content.encode(), mode=stat.S_IMODE(before.st_mode) if before else mode)
            if before:
                os.chown(real, before.st_uid, before.st_gid)
        except OSError as e:
            raise _not_written(path, (e.strerror or str(e)).lower()) from None

    def remove(self, path: str, *, link: bool) -> None:
        try:
            os.unlink(self.outside(path) if link else self.target(path))
        except FileNotFoundError:
            pass
        except OSError as e:
            raise _not_written(path, (e.strerror or str(e)).lower()) from None

    def missing_directories(self, path: str) -> list[str]:
        """Those above `path`, outermost first."""
        missing: list[str] = []
        directory = os.path.dirname(path)
        while not os.path.isdir(self.outside(directory)):
            missing.insert(0, directory)
            directory = os.path.dirname(directory)
        return missing

    def make_directories(self, paths: list[str]) -> None:
        for path in paths:
            try:
                os.mkdir(self.outside(path), 0o755)
            except FileExistsError:
                continue
            except OSError as e:
                raise _not_written(path, (e.strerror or str(e)).lower()) from None

    def remove_directories(self, paths: list[str]) -> None:
        """Innermost first; one that something else uses meanwhile stays."""
        for path in reversed(paths):
            try:
                os.rmdir(self.outside(path))
            except OSError:
                pass


def _not_written(path: str, why: str) -> FailedPrecondition:
    todo = "make it writable, or configure the engine by hand (see docs/compatibility.md)"
    return FailedPrecondition("engine-config-not-written", path, why, todo)
