"""Files that others read: written beside their name, synced, renamed."""

import os
import stat


def fsync_directory(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def fsync_file(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def write_atomic(
    path: str, data: bytes, *, mode: int = 0o600, sync: bool = True, sync_name: bool = True
) -> None:
    """Replace `path` in one step; a reader sees the old bytes or the new ones, never a part.

    With `sync` that holds after a crash of the machine as well, and with `sync_name` it is the new ones then.

    `mode` is what it says, whatever the umask: a container's user has to read the library, and the unit of a
    container engine may say UMask=0077.
    """
    temporary = f"{path}.{os.urandom(4).hex()}.tmp"  # not the pid: pid namespaces share folders
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        try:
            os.fchmod(fd, mode)
            write_all(fd, data)
            if sync:
                os.fsync(fd)
        except OSError as e:
            raise OSError(e.errno, e.strerror, path) from None
        finally:
            os.close(fd)
        os.rename(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    if sync and sync_name:
        fsync_directory(os.path.dirname(path) or ".")


def remove_tree(path: str) -> None:
    """Remove a directory of ours with what is in it; links are not followed. Raises OSError."""
    with os.scandir(path) as entries:
        for entry in list(entries):
            if entry.is_dir(follow_symlinks=False):
                remove_tree(entry.path)
            else:
                os.unlink(entry.path)
    os.rmdir(path)


def replace_link(path: str, target: str) -> None:
    """Make `path` a symbolic link to `target`, whatever file it is."""
    temporary = f"{path}.{os.urandom(4).hex()}.tmp"
    os.symlink(target, temporary)
    try:
        os.rename(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def open_regular(path: str, *, dir_fd: int | None = None) -> int:
    """A read-only fd of a regular file that is no link; the caller owns it. Raises OSError.

    O_NONBLOCK keeps a FIFO that somebody put there from hanging the open.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    fd = os.open(path, flags, dir_fd=dir_fd)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(22, "not a regular file", path)
    return fd


def read_regular(path: str, *, limit: int, dir_fd: int | None = None) -> bytes:
    """The bytes of a regular file. Raises OSError, EFBIG when it is longer than `limit`."""
    fd = open_regular(path, dir_fd=dir_fd)
    with os.fdopen(fd, "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(27, "file too large", path)
    return data
