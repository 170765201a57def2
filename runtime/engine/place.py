"""Where the GPU data of a snapshot lies: in its own directory, or in this machine's store."""

from __future__ import annotations

import os
import time

from diapause.runtime.errors import FailedPrecondition
from diapause.runtime.store import entry, gpu_data, layout, local, placement, room

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from diapause.runtime.engine.request import Request
    from diapause.runtime.gpud.client import Outcome

    class Place(Protocol):
        """A directory that a controller writes to; owns it until finish()."""

        path: str
        directory: int  # an fd of it
        placement: str  # as the manifest calls it
        name: str  # in the store, "" for none
        host: str  # that has the store, "" for none

        def finish(self, outcome: Outcome, *, allocations: int, sync: bool) -> None:
            """Everything is written, and the snapshot is about to be committed."""

        def discard(self) -> None:
            """Remove what was written, also after finish()."""

        def close(self) -> None: ...


class Embedded:
    """The snapshot's own directory."""

    placement = placement.EMBEDDED
    name = ""
    host = ""

    def __init__(self, request: Request, size: int) -> None:
        """Makes the directory. Raises FailedPrecondition where it has no room."""
        path = request.image_path
        os.makedirs(path, mode=layout.DIRECTORY_MODE, exist_ok=True)
        if (free := room.free_bytes(path)) < size:
            why = f"the GPU memory needs up to {size} bytes in {path}, free are {free}"
            todo = "free space, or choose another --image-path"
            raise FailedPrecondition("no-space", f"checkpoint {request.id}", why, todo)
        self.path = path
        self.directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def finish(self, outcome: Outcome, *, allocations: int, sync: bool) -> None:
        pass

    def discard(self) -> None:
        for name in os.listdir(self.path):
            if name == layout.GPU_INDEX or layout.gpu_number(name) is not None:
                os.unlink(f"{self.path}/{name}")

    def close(self) -> None:
        os.close(self.directory)


class Stored:
    """A directory of the local store, which an image names."""

    placement = placement.LOCAL

    def __init__(self, request: Request, size: int, *, name: str = "", kind: str = entry.GPU_DATA) -> None:
        """Raises FailedPrecondition for a store without room."""
        self._request = request
        self._kind = kind
        self.name = name or local.new_name(request.id)
        self.host = os.uname().nodename
        self._draft = local.Local.of(request.settings).create(self.name, size)
        self.path = self._draft.path
        self.directory = self._draft.fd

    def finish(self, outcome: Outcome, *, allocations: int, sync: bool) -> None:
        image = self._request.image_path if self._kind == entry.GPU_DATA else ""
        if image:
            gpu_data.adopt(image, self.path)
        found = entry.Entry(
            kind=self._kind,
            id=self._request.id,
            created=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            index=outcome.index,
            bytes=outcome.bytes,
            zero=outcome.zero,
            allocations=allocations,
            image=image,
        )
        self._draft.commit(found, sync=sync)

    def discard(self) -> None:
        self._draft.abandon()

    def close(self) -> None:
        self._draft.close()


def choose(request: Request, size: int) -> Place:
    """Where `size` bytes of GPU memory go. Raises FailedPrecondition for a place without room."""
    where = placement.place(size, request.settings, request.image_path)
    return Stored(request, size) if where == placement.LOCAL else Embedded(request, size)
