"""Directories whose contents we believe, because nobody but their owner can have put it there."""

from __future__ import annotations

import os
import stat

from diapause.runtime.errors import FailedPrecondition


def make(top: str, *below: str) -> str:
    """The path `top`/`below`…; every directory of it, from `top` on, is made for us alone if it is missing.

    Raises FailedPrecondition for one that somebody else can change, OSError for one that cannot be made.
    """
    os.makedirs(os.path.dirname(top) or ".", exist_ok=True)
    path = top
    _make_one(path)
    for name in below:
        path = f"{path}/{name}"
        _make_one(path)
    return path


def _make_one(path: str) -> None:
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    found = os.stat(path)
    if not stat.S_ISDIR(found.st_mode):
        why, todo = "it is no directory", "remove it"
    elif found.st_uid not in (0, os.geteuid()) or found.st_mode & 0o022:
        why, todo = "it belongs to somebody else, or others can write there", "make it root's with mode 0700"
    else:
        return
    raise FailedPrecondition("state-untrusted", f"directory {path}", why, todo)
