"""Where the C parts of this installation lie."""

from __future__ import annotations

import os

from diapause.runtime.errors import FailedPrecondition


def path(*parts: str) -> str:
    """A file of the native build: `path("lib", "libdiapause-cuda.so")`. It need not exist."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return os.path.join(os.environ.get("DIAPAUSE_NATIVE_DIR") or os.path.join(package, "native"), *parts)


def require(*parts: str) -> str:
    """The same, or FailedPrecondition if this installation lacks the file."""
    found = path(*parts)
    if not os.path.exists(found):
        raise FailedPrecondition(
            "native-missing", f"installation {path()}", f"{os.path.join(*parts)} is missing",
            "install the package diapause again, or run `make native` in a source tree",
        )  # fmt: skip
    return found
