"""Where the GPU data of a snapshot lies: in its own directory, or in this host's store."""

from __future__ import annotations

import os

from diapause.runtime.errors import FailedPrecondition
from diapause.runtime.gpud import names
from diapause.runtime.linux.files import read_regular
from diapause.runtime.store import gpu_index, layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from diapause.runtime.engine.request import CheckpointRequest, RestoreRequest
    from diapause.runtime.store.snapshot import Snapshot

    class Place(Protocol):
        """A directory that a controller writes to."""

        path: str
        directory: int  # an fd of it
        placement: str  # as the manifest calls it
        name: str  # in the store, "" for none
        host: str  # that has the store, "" for none

        def finish(self, image: str) -> None:
            """Everything is written: do what the snapshot in `image` needs of it."""

        def discard(self) -> None:
            """Remove what was written."""

        def close(self) -> None: ...


class Embedded:
    """The snapshot's own directory."""

    placement = "embedded"
    name = ""
    host = ""

    def __init__(self, path: str) -> None:
        """Makes the directory."""
        os.makedirs(path, mode=layout.DIRECTORY_MODE, exist_ok=True)
        self.path = path
        self.directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def finish(self, image: str) -> None:
        pass

    def discard(self) -> None:
        discard(self.path)

    def close(self) -> None:
        os.close(self.directory)


def discard(path: str) -> None:
    """Remove the GPU data from a directory."""
    for name in os.listdir(path):
        if name == layout.GPU_INDEX or layout.gpu_number(name) is not None:
            os.unlink(f"{path}/{name}")


def choose(request: CheckpointRequest, size: int) -> Place:
    """Where `size` bytes of GPU memory go. Raises FailedPrecondition for a disk without room."""
    place = Embedded(request.image_path)
    found = os.fstatvfs(place.directory)
    if (free := found.f_bavail * found.f_frsize) < size:
        place.close()
        why = f"the GPU memory needs up to {size} bytes in {request.image_path}, free are {free}"
        todo = "free space, or choose another --image-path"
        raise FailedPrecondition("no-space", f"checkpoint {request.id}", why, todo)
    return place


class Source:
    """A directory from which controllers bring back; owns the fd."""

    __slots__ = ("digest", "directory", "gpus", "path")

    def __init__(self, path: str, directory: int, digest: str) -> None:
        """`digest` is that of its index, "" for no data. Raises InvalidArgument for an index that is none."""
        self.path = path
        self.directory = directory
        self.digest = digest
        self.gpus: list[str] = []  # UUIDs
        if digest:
            try:
                data = read_regular(layout.GPU_INDEX, limit=gpu_index.MAX_BYTES, dir_fd=directory)
                devices = gpu_index.decode(data, f"{path}/{layout.GPU_INDEX}").devices
                self.gpus = [names.uuid_text(uuid) for uuid in devices]
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        os.close(self.directory)


def source(request: RestoreRequest, snapshot: Snapshot) -> Source:
    """Where the GPU data of a snapshot is. Raises NotFound when it is not on this host."""
    data = snapshot.document.gpu_data
    return Source(snapshot.path, snapshot.dup(), str(data["index"]) if data else "")
