"""The memory tier: files on a tmpfs that were faulted in and registered before anybody needs them.

    <memory-dir>/.segments/<uuid>/<n>      0600, all of one size

A save has the GPU write straight into such a file, which then gets a second name in the snapshot; a load
has it read from there. The second name is the lease: when the snapshot is removed the file has one name
again, and is used for another save. What a file holds beyond the slots of the index is of earlier saves.
"""

from __future__ import annotations

import errno
import mmap
import os
import threading

from diapause.runtime import private
from diapause.runtime.gpud import log
from diapause.runtime.gpud.cuda import CudaError
from diapause.runtime.gpud.host import Region
from diapause.runtime.gpud.pool import give_way
from diapause.runtime.linux import filesystem
from diapause.runtime.store.gpu_index import BLOCK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.gpud.calm import Calm
    from diapause.runtime.gpud.cuda import Device
    from diapause.runtime.gpud.target import Target

SIZE = 1 << 30  # bytes of a file
_MAKERS = 8  # threads
_STEP = 64 << 20  # bytes that are asked of the tmpfs at once
_FOLDER = ".segments"  # no snapshot has such a name


class Segment:
    """One file, open and registered; the fd and the registration live as long as the process."""

    __slots__ = ("fd", "identity", "name", "region", "taken")

    def __init__(self, name: str, fd: int, region: Region) -> None:
        self.name = name
        self.fd = fd
        self.region = region
        found = os.fstat(fd)
        self.identity = (found.st_dev, found.st_ino)
        self.taken = False  # by a save that has not given it a second name yet

    @property
    def free(self) -> bool:
        return not self.taken and os.fstat(self.fd).st_nlink == 1

    @property
    def slots(self) -> int:
        return self.region.size // BLOCK


class Segments:
    """All of them, made in the background."""

    def __init__(self, device: Device, folder: str, size: int, calm: Calm) -> None:
        """`folder`: of this GPU, "" for no memory tier. `size`: bytes to have ready.
        Files of an earlier controller are used again, however many there are.
        """
        self._calm = calm
        self._device = device
        self._all: list[Segment] = []
        self._lock = threading.Lock()
        self._segment = min(SIZE, size // BLOCK * BLOCK) or SIZE
        self._wanted = size // self._segment
        self._directory = _open_folder(folder) if folder else -1
        self._missing = self._find() if self._directory >= 0 else []
        for _ in range(min(_MAKERS, max(1, len(os.sched_getaffinity(0)) // 2), len(self._missing))):
            threading.Thread(target=self._fill, name="segments", daemon=True).start()

    def _find(self) -> list[tuple[str, bool]]:
        """Names of the files to be had, the last one first, and whether they have to be made."""
        old = sorted((name for name in os.listdir(self._directory) if name.isdigit()), key=int)
        number = max(map(int, old), default=-1) + 1
        new = [(str(number + n), True) for n in range(self._wanted - len(old))]
        return [*((name, False) for name in old), *new][::-1]

    def _fill(self) -> None:
        """One of the threads that get them ready: a core faults in 1 to 2 GB/s."""
        try:
            give_way()
            self._device.activate()
            while (task := self._next()) is not None:
                self._calm.wait()
                self._add(task[0], new=task[1])
        except (CudaError, OSError, ValueError) as e:
            log.write("warning", f"the memory tier stays at {self.ready} bytes: {e}")

    def _next(self) -> tuple[str, bool] | None:
        with self._lock:
            return self._missing.pop() if self._missing else None

    def _add(self, name: str, *, new: bool) -> None:
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_CREAT | os.O_EXCL if new else 0)
        fd = os.open(name, flags, 0o600, dir_fd=self._directory)
        try:
            found = os.fstat(fd)
            if found.st_nlink == 1:  # a snapshot's stays as it is
                for offset in range(found.st_size, self._segment, _STEP):
                    self._calm.wait()
                    os.posix_fallocate(fd, offset, min(_STEP, self._segment - offset))
            size = os.fstat(fd).st_size // BLOCK * BLOCK
            memory = mmap.mmap(fd, size, mmap.MAP_SHARED)
            segment = Segment(name, fd, Region(self._device, memory))
        except BaseException:
            os.close(fd)
            if new:
                os.unlink(name, dir_fd=self._directory)
            raise
        with self._lock:
            self._all.append(segment)

    @property
    def ready(self) -> int:
        """Bytes that a save could take now."""
        with self._lock:
            return sum(segment.region.size for segment in self._all if segment.free)

    def take(self) -> Segment | None:
        """A free one for a save; give() or release() it."""
        with self._lock:
            for segment in self._all:
                if segment.free:
                    segment.taken = True
                    return segment
        return None

    def serves(self, target: Target) -> bool:
        """Whether files of the target can be segments: a hard link stays on its file system and mount."""
        if self._directory < 0 or not target.in_memory:
            return False
        return os.fstat(self._directory).st_dev == os.fstat(target.directory).st_dev

    def give(self, segment: Segment, target: Target) -> int:
        """Make a segment a data file of the target; returns its number. Raises OSError."""
        return target.link(segment.name, self._directory)

    def release(self, segment: Segment) -> None:
        """The save is over, whether the segment has a second name by now or not."""
        segment.taken = False

    def find(self, fd: int) -> Segment | None:
        """The segment that a data file is."""
        found = os.fstat(fd)
        with self._lock:
            for segment in self._all:
                if segment.identity == (found.st_dev, found.st_ino):
                    return segment
        return None


def folder(memory_dir: str, gpu: str) -> str:
    """Where the segments of a GPU lie, "" if there is no memory tier."""
    return f"{memory_dir}/{_FOLDER}/{gpu}" if memory_dir else ""


def _open_folder(path: str) -> int:
    """An fd of it, made if need be; -1 where there can be no memory tier."""
    try:
        memory_dir, name, gpu = path.rsplit("/", 2)
        private.make(memory_dir, name, gpu)
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        if not filesystem.in_memory(fd):
            os.close(fd)
            raise OSError(errno.EINVAL, "no tmpfs", path)
    except Exception as e:  # the tier makes things faster: without it they still work
        log.write("warning", f"no memory tier: {e}")
        return -1
    return fd
