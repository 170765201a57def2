"""A snapshot as a directory: sealing one that CRIU has filled, opening and verifying one."""

from __future__ import annotations

import os

from diapause.runtime.errors import DiapauseError, InvalidArgument, NotFound
from diapause.runtime.linux import files
from diapause.runtime.store import digest, layout, manifest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from diapause.runtime.store.manifest import File, Manifest

_AGAIN = "the snapshot is damaged: take it anew or copy it again"


def clear(path: str) -> None:
    """Make room for a new dump: without its manifest the directory is no snapshot any more.

    Page images go too: CRIU would truncate them under the eyes of whoever follows their growth. GPU data is
    written anew, perhaps elsewhere; call this before anybody does.
    """
    try:
        names = os.listdir(path)
    except FileNotFoundError:
        return
    for name in names:
        old = name.startswith(layout.PAGES_PREFIX) or layout.gpu_number(name) is not None
        if old or name in (layout.MANIFEST, layout.GPU_INDEX):
            os.unlink(f"{path}/{name}")


def parts(path: str, followed: Mapping[str, tuple[int, int, str]]) -> list[File]:
    """The files that belong to the snapshot, hashed; `followed` has those that were hashed already.

    GPU data is not read again: its index has the hashes.
    """
    found = []
    for name in sorted(filter(layout.is_part, os.listdir(path))):
        fd = files.open_regular(f"{path}/{name}")
        try:
            os.fchmod(fd, layout.FILE_MODE)
            known = os.fstat(fd)
            inode, size, text = followed.get(name, (0, 0, ""))
            if layout.gpu_number(name) is not None:
                size, text = known.st_size, manifest.BY_INDEX
            elif (inode, size) != (known.st_ino, known.st_size):
                size, text = digest.of_file(fd)
        finally:
            os.close(fd)
        found.append(manifest.File(name=name, size=size, digest=text))
    return found


def commit(path: str, document: Manifest, *, sync: bool) -> None:
    """Write the manifest, the last file. `sync` makes everything survive a crash of the machine."""
    if sync:
        for file in document.files:
            files.fsync_file(f"{path}/{file.name}")
    files.write_atomic(f"{path}/{layout.MANIFEST}", document.encode(), mode=layout.FILE_MODE, sync=sync)


def committed(path: str) -> bool:
    return os.path.lexists(f"{path}/{layout.MANIFEST}")


def revoke(path: str) -> None:
    """Take a commit back. Raises OSError for one that is there and stays."""
    try:
        os.unlink(f"{path}/{layout.MANIFEST}")
    except OSError:
        if committed(path):  # a file system that is read-only refuses also what is not there
            raise


def remove(path: str) -> tuple[str, list[str]]:
    """Remove a snapshot, the manifest first, and its directory if nothing else is in it.

    Returns the name of its local snapshot, which stays ("": it has none), and what else lies there. Raises
    as Snapshot.open() does; files may be missing or damaged.
    """
    with Snapshot.open(path, compare=False) as snapshot:
        local = str((snapshot.document.gpu_data or {}).get("name", ""))
    os.unlink(f"{path}/{layout.MANIFEST}")
    for name in os.listdir(path):
        if layout.is_part(name) or name in layout.VOLATILE:
            os.unlink(f"{path}/{name}")
    left = sorted(os.listdir(path))
    if not left:
        os.rmdir(path)
    return local, left


class Snapshot:
    """A directory with a manifest that was read and is sound in itself; owns the directory's fd."""

    __slots__ = ("_fd", "document", "path")

    def __init__(self, path: str, fd: int, document: Manifest) -> None:
        self.path = path
        self._fd = fd
        self.document = document

    @classmethod
    def open(cls, path: str, *, compare: bool = True) -> Snapshot:
        """Read the manifest and compare the names and sizes of all files, unless told not to.

        Raises NotFound (snapshot-missing, snapshot-incomplete, snapshot-file-missing) and
        InvalidArgument (snapshot-short-file, snapshot-unexpected-file and those of the manifest).
        """
        where = f"snapshot {path}"
        try:
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            raise NotFound("snapshot-missing", where, "no such directory", "correct --image-path") from None
        try:
            snapshot = cls(path, fd, _read(fd, where))
            if compare:
                snapshot._compare_names(where)
        except BaseException:
            os.close(fd)
            raise
        return snapshot

    def _compare_names(self, where: str) -> None:
        if strange := self._strange():
            raise _unexpected(where, strange[0])
        for file in self.document.files:
            self._with(file, where, _compare_size)

    def _strange(self) -> list[str]:
        """Files that look like parts of it and are not in its manifest."""
        data = self.document.gpu_data
        local = data is not None and data["placement"] == "local"
        there = {name for name in os.listdir(self._fd) if layout.is_part(name)}
        if local:  # data files that lie there are an embedding that was not finished
            there = {name for name in there if layout.gpu_number(name) is None}
        named = {file.name for file in self.document.files}
        return sorted(there - named)

    def dup(self) -> int:
        """A descriptor of the directory that the caller owns."""
        return os.dup(self._fd)

    def _with(self, file: File, where: str, use: Callable[[int, File, str], None]) -> None:
        try:
            fd = files.open_regular(file.name, dir_fd=self._fd)
        except FileNotFoundError:
            raise NotFound("snapshot-file-missing", where, f"{file.name} is missing", _AGAIN) from None
        except OSError as e:
            why = f"{file.name}: {(e.strerror or '').lower()}"
            raise InvalidArgument("snapshot-bad-file", where, why, _AGAIN) from None
        try:
            use(fd, file, where)
        finally:
            os.close(fd)

    def verify(self, chosen: Callable[[File], bool] = lambda _: True) -> None:
        """Compare the digests of all files, or of the chosen ones. Raises InvalidArgument.

        GPU data is left out: store/gpu_data.py compares the hashes of its index.
        """
        where = f"snapshot {self.path}"
        for file in filter(chosen, self.document.files):
            if file.digest != manifest.BY_INDEX:
                self._with(file, where, _compare_digest)

    def faults(self, *, contents: bool = True) -> Iterator[tuple[str, DiapauseError]]:
        """Every file that is not as the manifest says, with what is wrong; for one that was opened anyhow."""
        where = f"snapshot {self.path}"
        for name in self._strange():
            yield name, _unexpected(where, name)
        for file in self.document.files:
            try:
                self._with(file, where, _compare_size)
                if contents and file.digest != manifest.BY_INDEX:
                    self._with(file, where, _compare_digest)
            except DiapauseError as error:
                yield file.name, error

    def close(self) -> None:
        os.close(self._fd)

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _read(directory: int, where: str) -> Manifest:
    try:
        data = files.read_regular(layout.MANIFEST, limit=manifest.MAX_BYTES, dir_fd=directory)
    except FileNotFoundError:
        names: Collection[str] = os.listdir(directory)
        why = "the directory is empty" if not names else f"{layout.MANIFEST} is missing"
        raise NotFound(
            "snapshot-incomplete", where, why,
            "the checkpoint did not finish, or was taken by something else: take it with diapause-runc",
        ) from None  # fmt: skip
    except OSError as e:
        why = f"{layout.MANIFEST}: {(e.strerror or '').lower()}"
        raise InvalidArgument("snapshot-bad-file", where, why, _AGAIN) from None
    return manifest.decode(data, where)


def _unexpected(where: str, name: str) -> InvalidArgument:
    return InvalidArgument(
        "snapshot-unexpected-file", where, f"{name} is not in its manifest",
        "remove the file, or take the snapshot anew into an empty directory",
    )  # fmt: skip


def _compare_size(fd: int, file: File, where: str) -> None:
    size = os.fstat(fd).st_size
    if size != file.size:
        why = f"{file.name} has {size} bytes, the manifest says {file.size}"
        raise InvalidArgument("snapshot-short-file", where, why, _AGAIN)


def _compare_digest(fd: int, file: File, where: str) -> None:
    size, real = digest.of_file(fd)
    if (size, real) != (file.size, file.digest):
        raise InvalidArgument("snapshot-file-digest", where, f"{file.name} has digest {real}", _AGAIN)


def verify(path: str) -> Manifest:
    """Check a whole snapshot and return its manifest."""
    with Snapshot.open(path) as snapshot:
        snapshot.verify()
        return snapshot.document
