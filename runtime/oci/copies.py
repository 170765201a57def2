"""Content-addressed copies of the library below the state directory.

A container keeps the copy it was started with: an upgrade of the package never changes a running one, and a
restore finds the library that its snapshot names.
"""

from __future__ import annotations

import os

from diapause.runtime import native, private
from diapause.runtime.container import state_dir
from diapause.runtime.errors import FailedPrecondition, Internal
from diapause.runtime.oci import digest

NAME = "libcuda.so.1"


def directory() -> str:
    """Raises FailedPrecondition where others can change what lies there."""
    return private.make(state_dir(), "lib")


def path_of(hexadecimal: str) -> str:
    """Raises as directory() does."""
    return f"{directory()}/{hexadecimal}/{NAME}"


def current() -> tuple[str, str]:
    """(path, "sha256:…") of the installed library's copy, made if it is not there yet."""
    source, hexadecimal = _installed()
    path = path_of(hexadecimal)
    if not os.path.exists(path):
        publish(source, hexadecimal)
    return path, f"sha256:{hexadecimal}"


def find(wanted: str) -> str:
    """The copy with the digest "sha256:…", "" if this host has none and the installed one is another."""
    hexadecimal = wanted.removeprefix("sha256:")
    if len(hexadecimal) != 64 or set(hexadecimal) - set("0123456789abcdef"):
        return ""
    path = path_of(hexadecimal)
    if not os.path.exists(path):
        source, installed = _installed()
        return publish(source, installed) if installed == hexadecimal else ""
    return path


def _installed() -> tuple[str, str]:
    source = native.require("lib", "libdiapause-cuda.so")
    return source, _recorded(f"{source}.sha256") or digest.of_file(source).digest.removeprefix("sha256:")


def publish(source: str, hexadecimal: str) -> str:
    """Copy `source` to its address. Raises Internal if it does not have the digest."""
    from hashlib import sha256

    with open(source, "rb") as file:
        data = file.read()
    if (found := sha256(data).hexdigest()) != hexadecimal:
        why = f"{source} has the digest {found[:16]}…, recorded is {hexadecimal[:16]}…"
        raise Internal("library-damaged", "library", why, "install the package diapause again")
    return store(data, hexadecimal)


def store(data: bytes, hexadecimal: str) -> str:
    """Write a library, whose digest was compared, to its address."""
    from diapause.runtime.linux.files import write_atomic

    path = path_of(hexadecimal)
    try:
        private.make(os.path.dirname(path))
        write_atomic(path, data, mode=0o555)
    except OSError as e:
        why = f"{path} cannot be written: {e.strerror}"
        raise FailedPrecondition("library-not-published", "library", why, "free space there") from e
    return path


def _recorded(path: str) -> str:
    """The digest that the build wrote beside the library, "" if there is none."""
    try:
        with open(path, encoding="ascii") as file:
            return (file.read().split() or [""])[0]
    except OSError:
        return ""
