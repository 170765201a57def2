"""The local store: GPU data that an image directory only refers to, on disk or in memory.

    <store-dir>/<name>/             diapause-gpu.idx  diapause-gpu-<n>.img  diapause-local.json
    <store-dir>/.part-<name>/       being written; whoever writes holds a lock on the directory
    <store-dir>/.gone-<name>/       being removed
    <memory-dir>/snapshots/<name>/  the same on a tmpfs; a data file may be a second name of one in .segments,
                                    which the controller of a GPU keeps faulted

Whoever uses a snapshot holds a shared lock on its directory, so it is not removed under a restore. Nobody
tells us when a client deletes an image: nothing here is deleted unless somebody says so, except what was
never finished.
"""

from __future__ import annotations

import fcntl
import os
import time

from diapause.runtime import container, private
from diapause.runtime.errors import AlreadyExists, FailedPrecondition, InvalidArgument, NotFound, Unavailable
from diapause.runtime.linux import filesystem
from diapause.runtime.linux.locks import Lock
from diapause.runtime.store import entry, held, layout, room
from diapause.runtime.store.draft import Draft
from diapause.runtime.store.held import GONE, PART, Held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Protocol

    from diapause.runtime.store.entry import Entry

    class Settings(Protocol):
        """The keys of [snapshot] that say where the store is."""

        store_dir: str
        memory_dir: str
        store_limit: int


DISK = "disk"
MEMORY = "memory"

_PATIENCE = 10.0  # seconds for others to make up their minds; they only look and rename


def new_name(container_id: str) -> str:
    """A name that nobody has: the container, the time, and chance."""
    plain = "".join(c if layout.is_flat(f"x{c}") else "-" for c in container_id).lstrip("-.")[:80]
    when = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    return f"{plain or 'container'}-{when}-{os.urandom(3).hex()}"


class Found:
    """A directory of the store, as all() saw it."""

    __slots__ = ("busy", "entry", "fault", "name", "path", "stored", "tier", "used")

    def __init__(
        self, *, name: str, tier: str, path: str, stored: int, used: float, busy: bool, fault: str,
        entry: Entry | None,
    ) -> None:  # fmt: skip
        self.name = name
        self.tier = tier
        self.path = path
        self.stored = stored  # bytes that it takes
        self.used = used  # seconds since the epoch: when it was made, or last restored from
        self.busy = busy  # somebody reads or writes it
        self.fault = fault  # "" for a sound one
        self.entry = entry  # None if that cannot be read


class Local:
    """The store of this machine; directories are made when something is put there."""

    __slots__ = ("disk", "limit", "memory")

    def __init__(self, disk: str, memory: str = "", limit: int = 0) -> None:
        self.disk = disk
        self.memory = memory  # "": there is none
        self.limit = limit  # bytes on disk, 0: no limit

    @classmethod
    def of(cls, settings: Settings) -> Local:
        disk = settings.store_dir or f"{container.state_dir()}/snapshots"
        memory = f"{settings.memory_dir}/snapshots" if settings.memory_dir else ""
        return cls(disk, memory, settings.store_limit)

    def create(self, name: str, bytes: int) -> Draft:
        """A new local snapshot of at most that many bytes, in memory if it fits there.

        Raises AlreadyExists (store-name-taken), FailedPrecondition (store-full), InvalidArgument
        (store-bad-name), Unavailable (store-busy).
        """
        self._check(name)
        private.make(self.disk)
        with self._lock():
            for tier, top in self._tiers():
                draft = f"{top}/{PART}{name}"
                if os.path.lexists(f"{top}/{name}") or (
                    os.path.lexists(draft) and not held.remove_idle(draft)
                ):
                    why = f"{tier} has one of that name"
                    raise AlreadyExists("store-name-taken", _what(name), why, "choose another name")
            try:
                tier, top = self._choose(name, bytes)
            except FailedPrecondition:
                if not self._sweep():  # it takes time, and a container may be waiting
                    raise
                tier, top = self._choose(name, bytes)
            path = f"{top}/{PART}{name}"
            os.mkdir(path, layout.DIRECTORY_MODE)
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                room.reserve(path, bytes)
            except BaseException:
                os.close(fd)
                held.remove(path)
                raise
        return Draft(name, tier, path, fd)

    def _choose(self, name: str, bytes: int) -> tuple[str, str]:
        """The tier that has room, and its directory."""
        if self.memory and not self.memory_fault():
            private.make(os.path.dirname(self.memory), "snapshots")
            if bytes <= self._free_memory():
                return MEMORY, self.memory
        todo = "make room with `diapause snapshot prune` or `rm`, or choose another [snapshot] placement"
        used = sum(room.taken(path) for path in _paths(self.disk))
        if self.limit and used + bytes > self.limit:
            why = f"{bytes} bytes do not fit into {self.disk}: {used} of {self.limit} bytes are taken"
            raise FailedPrecondition("store-full", _what(name), why, f"{todo}, or raise store-limit")
        free = room.free_bytes(self.disk) - sum(room.outstanding(path) for path in _paths(self.disk))
        if bytes + room.HEADROOM > free:
            why = f"{bytes} bytes do not fit into {self.disk}: {max(free, 0)} bytes are free there"
            raise FailedPrecondition("store-full", _what(name), why, todo)
        return DISK, self.disk

    def memory_fault(self) -> str:
        """Why memory-dir is not used, "" if it is, or if there is none. Its tmpfs may not be mounted yet."""
        if not self.memory:
            return ""
        top = os.path.dirname(self.memory)
        try:
            fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as e:
            return f"{top}: {(e.strerror or '').lower()}"
        try:
            return "" if filesystem.in_memory(fd) else f"{top} is no tmpfs"
        finally:
            os.close(fd)

    def _free_memory(self) -> int:
        top = os.path.dirname(self.memory)
        return room.free_memory(top) - sum(room.outstanding(path) for path in _paths(self.memory))

    def open(self, name: str, *, host: str = "") -> Held:
        """The local snapshot; `host` is where the manifest says that it is.

        Raises NotFound (snapshot-local-missing) and what entry.read() does.
        """
        if layout.is_flat(name):
            for _, top in self._tiers():
                if found := held.hold(name, f"{top}/{name}"):
                    return found
        where = f"the local store of {host}" if host else "the local store of the machine that took it"
        raise NotFound(
            "snapshot-local-missing", _what(name), f"it is not in {' or '.join(self._tops())}",
            f"its GPU data was put into {where}: restore there, or embed it there first",
        )  # fmt: skip

    def all(self) -> list[Found]:
        """Everything that is there, also what is being written or broken; by name."""
        found = []
        for tier, top in self._tiers():
            for name in _names(top):
                path = f"{top}/{name}"
                if layout.is_flat(name.removeprefix(PART)) and _is_directory(path):
                    found.append(_look(name.removeprefix(PART), tier, path))
        return sorted(found, key=lambda each: (each.name, each.tier))

    def remove(self, name: str, *, missing_ok: bool = False) -> None:
        """Raises NotFound (store-missing), Unavailable (store-in-use) while somebody uses it."""
        for _, top in self._tiers():
            path = f"{top}/{name}"
            if layout.is_flat(name) and _is_directory(path):
                if not any(_tries(lambda path=path: held.remove_idle(path))):  # type: ignore[misc]
                    why, todo = "a checkpoint or restore uses it", "try again when that has ended"
                    raise Unavailable("store-in-use", _what(name), why, todo)
                return
        if not missing_ok:
            why = f"there is none in {' or '.join(self._tops())}"
            raise NotFound("store-missing", _what(name), why, "see `diapause snapshot list`")

    def unfinished(self) -> list[str]:
        """The directories that sweep() would remove."""
        return [path for path in self._leftovers() if not held.is_busy(path)]

    def sweep(self) -> list[str]:
        """Remove what was begun and never finished, and return its directories."""
        if not os.path.isdir(self.disk):
            return []
        with self._lock():
            return self._sweep()

    def _sweep(self) -> list[str]:
        return [path for path in self._leftovers() if held.remove_idle(path)]

    def _leftovers(self) -> Iterator[str]:
        for _, top in self._tiers():
            for name in _names(top):
                if name.startswith((PART, GONE)):
                    yield f"{top}/{name}"

    def _tiers(self) -> list[tuple[str, str]]:
        return [*([(MEMORY, self.memory)] if self.memory else []), (DISK, self.disk)]

    def _tops(self) -> list[str]:
        return [top for _, top in self._tiers()]

    def _check(self, name: str) -> None:
        if not layout.is_flat(name) or len(name) > 200:
            why = "a name has letters, digits, dots, dashes and underscores, and begins with none of . and -"
            raise InvalidArgument("store-bad-name", _what(name[:80]), why, "choose another name")

    def _lock(self) -> Lock:
        """Held while names and room are decided."""
        limit = time.monotonic() + _PATIENCE
        while True:
            if lock := Lock.try_take(f"{self.disk}/.lock"):
                return lock
            if time.monotonic() > limit:
                raise Unavailable(
                    "store-busy", f"local store {self.disk}", "another one works on it", "try again"
                )
            time.sleep(0.01)


def _tries(call: Callable[[], bool]) -> Iterator[bool]:
    """The same thing again: whoever only looks has the lock for a moment."""
    for _ in range(10):
        yield call()
        time.sleep(0.02)


def _what(name: str) -> str:
    return f"local snapshot {name}"


def _is_directory(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _paths(top: str) -> list[str]:
    return [f"{top}/{name}" for name in os.listdir(top)]


def _names(path: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(path) if name != ".lock")
    except FileNotFoundError:
        return []


def _look(name: str, tier: str, path: str) -> Found:
    try:
        document, fault = entry.read(path), ""
    except FileNotFoundError:
        document, fault = None, "it was not finished"
    except InvalidArgument as e:
        document, fault = None, e.why
    busy = held.is_busy(path)
    if os.path.basename(path).startswith(PART):
        fault = "it is being written" if busy else "it was not finished"
    return Found(
        name=name, tier=tier, path=path, stored=room.allocated(path), used=os.stat(path).st_mtime, busy=busy,
        fault=fault, entry=document,
    )  # fmt: skip
