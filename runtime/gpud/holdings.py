"""What a controller holds: file descriptors of device memory, by container, process and allocation.

Device memory lives as long as somebody has such a descriptor. No context is needed for that, and memory
that a process imported cannot be exported by it again: so who brought it back keeps them.
"""

from __future__ import annotations

import os
import threading

from diapause.runtime.store.gpu_index import Allocation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from diapause.runtime.gpud.job import Job
    from diapause.runtime.gpud.keeper import Keeper
    from diapause.runtime.gpud.window import Window

Key = tuple[int, int]  # process as the container sees it, number of the allocation in it


class Held:
    """Memory of one allocation. Owns the fd."""

    __slots__ = ("address", "at", "fd", "flags", "id", "process", "size")

    def __init__(self, entry: Sequence[int], fd: int) -> None:
        """`entry`: what values() of it gave."""
        self.process, self.id, self.size, self.address, self.flags = entry  # size in bytes
        self.fd = fd
        self.at = 0  # where the controller has it mapped, 0: nowhere

    @property
    def key(self) -> Key:
        return (self.process, self.id)

    def values(self) -> list[int]:
        """As it travels: process, id, size, address in the process, flags."""
        return [self.process, self.id, self.size, self.address, self.flags]

    @property
    def blocks(self) -> int:
        return self.allocation().blocks

    def allocation(self) -> Allocation:
        return Allocation(
            process=self.process, device=0, id=self.id, address=self.address, size=self.size, flags=self.flags
        )

    def close(self) -> None:
        os.close(self.fd)


class Container:
    """Everything of one container. Whoever changes it holds `lock`."""

    def __init__(self, name: str, keeper: Keeper) -> None:
        self.name = name
        self.lock = threading.RLock()
        self.held: dict[Key, Held] = {}
        self.listed: dict[Key, Held] = {}  # what the next save is of
        self.windows: list[Window] = []
        self.job: Job | None = None
        self.pidfds: dict[int, int] = {}  # of processes whose end ends what is held of them; owned
        self.followed: dict[int, object] = {}  # who looks what a process has freed
        self._keeper = keeper

    @property
    def busy(self) -> bool:
        return self.job is not None and not self.job.done

    @property
    def empty(self) -> bool:
        return not self.held and not self.busy

    def hold(self, batch: Iterable[Held]) -> None:
        """Keep memory; an allocation of the same name is replaced."""
        batch = list(batch)
        self._keeper.hold(self.name, batch)
        for held in batch:
            old = self.held.get(held.key)
            self.held[held.key] = held
            if old is not None and old is not held:
                old.close()

    def drop(self, unwanted: Callable[[Held], bool]) -> None:
        """Let go of memory."""
        gone = [held for held in self.held.values() if unwanted(held)]
        if gone:
            self._keeper.drop(self.name, [held.key for held in gone])
        for held in gone:
            del self.held[held.key]
            self.listed.pop(held.key, None)
            held.close()

    def unmap(self) -> None:
        """Give the addresses back at which memory was mapped; it is still held."""
        for window in self.windows:
            window.close()
        self.windows.clear()
        for held in self.held.values():
            held.at = 0

    def watch(self, process: int, pidfd: int) -> None:
        """Takes the pidfd over."""
        self._keeper.watch(self.name, process, pidfd)
        if (old := self.pidfds.get(process)) is not None:
            os.close(old)
        self.pidfds[process] = pidfd

    def ended(self, process: int) -> None:
        """A process is no more: neither is what it had."""
        os.close(self.pidfds.pop(process))
        self.followed.pop(process, None)
        self._keeper.drop(self.name, [], process=process)
        self.drop(lambda held: held.process == process)

    def clear(self) -> None:
        """Let go of everything. No job may be running."""
        self.unmap()
        self.listed.clear()
        self.drop(lambda held: True)
        for process in list(self.pidfds):
            self.ended(process)


class Holdings:
    """All containers that a controller knows."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._containers: dict[str, Container] = {}
        self._lock = threading.Lock()

    def get(self, name: str) -> Container:
        """The container, an empty one if it is new."""
        with self._lock:
            if name not in self._containers:
                self._containers[name] = Container(name, self._keeper)
            return self._containers[name]

    def find(self, name: str) -> Container | None:
        with self._lock:
            return self._containers.get(name)

    def all(self) -> list[Container]:
        with self._lock:
            return list(self._containers.values())

    def forget(self, container: Container) -> None:
        """Leave out a container that is empty; one that somebody got meanwhile stays usable."""
        with self._lock:
            if container.empty and self._containers.get(container.name) is container:
                del self._containers[container.name]
