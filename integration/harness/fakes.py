"""Stand-ins that behave like the real thing until they are told to fail."""

import os
import stat
from pathlib import Path


def _script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def failing_criu(folder: Path, real: Path, *, request: int) -> Path:
    """A criu that ends without a word at its `request`-th request since it was made.

    runc asks for the version first (1), then for the dump or restore (2).
    """
    count = folder / "requests"
    return _script(
        folder / "criu",
        f'#!/bin/sh\n[ "$1" = swrk ] || exec {real} "$@"\n'
        f'echo >>{count}; [ "$(wc -l <{count})" -eq {request} ] && exit 1\nexec {real} "$@"\n',
    )


def old_criu(folder: Path, version: str) -> Path:
    """A criu that says it is of another version."""
    return _script(folder / "criu", f'#!/bin/sh\necho "Version: {version}"\n')


def failing_action(folder: Path, action: str) -> Path:
    """A CRIU configuration file whose action script fails at one action."""
    script = _script(folder / "action", f'#!/bin/sh\n[ "$CRTOOLS_SCRIPT_ACTION" != {action} ]\n')
    config = folder / "criu.conf"
    config.write_text(f"action-script {script}\n")
    return config


def noting_action(folder: Path) -> tuple[Path, Path]:
    """A CRIU configuration file whose action script waits, at every action, until a file `go` exists.

    Returns the configuration and the file in which the actions reached so far are noted.
    """
    notes = folder / "actions"
    notes.touch()
    script = _script(
        folder / "action",
        f'#!/bin/sh\necho "$CRTOOLS_SCRIPT_ACTION" >>{notes}\nn=0\n'
        f"while [ ! -e {folder}/go ] && [ $n -lt 1000 ]; do n=$((n+1)); sleep 0.02; done\n",
    )
    config = folder / "criu.conf"
    config.write_text(f"action-script {script}\n")
    return config, notes


def full(folder: Path, size: str) -> Path:
    """A small file system in memory; `empty` takes it away."""
    folder.mkdir()
    os.system(f"mount -t tmpfs -o size={size} tmpfs {folder}")
    return folder


def empty(folder: Path) -> None:
    os.system(f"umount -l {folder}")
