"""Paths below a directory as a process sees them that has it as its root.

For the path of every create, which cannot afford the import that openat2(2) costs (ctypes). Each component is
opened by the one before it and no link is followed by the kernel, so a link that is swapped meanwhile leads
nowhere.
"""

from __future__ import annotations

import os

LINKS = 40  # as many as the kernel follows


def open_in(root: str, path: str, flags: int) -> tuple[int, str]:
    """(fd, the path below `root` that it has without links); the caller owns the fd. Raises OSError."""
    ahead = _parts(path)
    behind: list[tuple[str, int]] = []  # name and fd of each directory on the way
    followed = 0
    top = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        while ahead:
            name = ahead.pop()
            if name == ".":
                continue
            if name == "..":
                if behind:
                    os.close(behind.pop()[1])
                continue
            parent = behind[-1][1] if behind else top
            target = _link(name, parent)
            if target is not None:
                followed += 1
                if followed > LINKS:
                    raise OSError(40, "too many levels of symbolic links", path)
                if target.startswith("/"):
                    while behind:
                        os.close(behind.pop()[1])
                ahead += _parts(target)
                continue
            kind = os.O_PATH | os.O_DIRECTORY if ahead else flags
            behind.append((name, os.open(name, kind | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)))
        found = "/" + "/".join(name for name, _ in behind)
        if not behind:
            return os.open(root, flags | os.O_CLOEXEC), found
        if _is_path_only(behind[-1][1], flags):  # the path ends in `.` or `..`: a directory on the way
            return os.open(".", flags | os.O_CLOEXEC, dir_fd=behind[-1][1]), found
        return behind.pop()[1], found
    finally:
        os.close(top)
        for _, fd in behind:
            os.close(fd)


def _parts(path: str) -> list[str]:
    """The components, the last one first; a `.` stays, as what stands before it has to be a directory."""
    parts = [part for part in path.split("/") if part]
    return ["."] * path.endswith("/") + parts[::-1]


def _link(name: str, parent: int) -> str | None:
    try:
        return os.readlink(name, dir_fd=parent)
    except OSError as e:
        if e.errno in (22, 2):  # EINVAL: no link; ENOENT: the open says so
            return None
        raise


def _is_path_only(fd: int, flags: int) -> bool:
    import fcntl

    return bool(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_PATH) and not flags & os.O_PATH
