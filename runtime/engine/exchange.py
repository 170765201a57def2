"""Device memory on its way: libraries export it, controllers hold and save it, libraries take it back.

While the memory of a process is away this process holds an fd of every allocation as well, so that the
container outlives its controller: device memory lives as long as one fd of it is open.
"""

from __future__ import annotations

import os
import resource

from diapause.runtime.engine import moved
from diapause.runtime.engine import subject as limits
from diapause.runtime.engine.control import MemoryFlag
from diapause.runtime.engine.controllers import Controllers
from diapause.runtime.engine.failures import label
from diapause.runtime.engine.libraries import Libraries, each
from diapause.runtime.errors import DiapauseError, FailedPrecondition, Internal, Unavailable
from diapause.runtime.gpud import names
from diapause.runtime.linux.deadline import Deadline
from diapause.runtime.linux.thread import Thread
from diapause.runtime.store.gpu_index import Allocation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from diapause.runtime.engine.control import Device, Dropped, Memory, Stats
    from diapause.runtime.engine.libraries import Library
    from diapause.runtime.engine.processes import GpuProcess
    from diapause.runtime.engine.subject import Subject
    from diapause.runtime.gpud.client import Controller

_STARTS = 60.0  # seconds for a controller to start: it initialises the driver and pins memory
_TICK = 0.001  # seconds between two looks whether a call has ended
_SPARE = 256  # fds that this process needs for everything else
_KEPT = MemoryFlag.SHARED | MemoryFlag.SLAB | MemoryFlag.PROGRAM  # what the index says of an allocation


class Unsuited(Exception):
    """Memory cannot change hands here; the driver alone may still save it."""

    def __init__(self, error: DiapauseError, *, for_good: bool = False) -> None:
        """`for_good`: it is the program's doing, so who asked for this engine by name gets the error."""
        super().__init__(str(error))
        self.error = error
        self.for_good = for_good


class Exchange:
    """Owns channels, connections and fds."""

    def __init__(self, subject: Subject, container: str, libcuda: str) -> None:
        """`container` is the key by which the controllers know it."""
        self._subject = subject
        self.controllers = Controllers(container, libcuda)
        self.processes: list[GpuProcess] = []  # those with closed gates, the subject's; it may leave some out
        self._libraries = Libraries()
        self._fds: dict[int, dict[int, int]] = {}  # by pid, then by id
        self._gpus: dict[int, dict[int, str]] = {}  # UUIDs by pid, then by ordinal
        self._used: set[str] = set()  # UUIDs
        self.stats: dict[int, Stats] = {}  # by pid
        self.keep = False  # what was saved is to stay when the rest is undone
        self.bytes = 0  # of device memory that changed hands
        self.count = 0

    # -- before anything is touched ------------------------------------------------------------------

    def add(self, processes: Iterable[GpuProcess]) -> None:
        self.processes += processes
        self._subject.journal.note(gated=[[process.pid, process.start] for process in self.processes])

    def look(self, deadline: Deadline | None = None) -> None:
        """Raises Unsuited for what cannot change hands. The processes can answer, or time passes."""
        deadline = deadline or Deadline.after(limits.QUERY)
        try:
            self.attend(lambda: self._ask(deadline))
        except FailedPrecondition as error:  # one of a development version
            raise Unsuited(error) from error
        for pid, stats in self.stats.items():
            self._judge(pid, stats)
        for gpu in self.gpus:
            try:
                self.controllers.get(gpu, Deadline.after(_STARTS))
            except (FailedPrecondition, Unavailable) as error:
                raise Unsuited(error) from error

    def _ask(self, deadline: Deadline) -> None:
        found = self.libraries(deadline)
        self.stats = each(found, lambda library: library.channel.stats(deadline))
        self._find_gpus(found, deadline)

    def attend(self, call: Callable[[], None]) -> None:
        """Make a call on libraries while threads are held: those that run need their tracer now and then."""
        watch = self._subject.watch
        if not self._subject.hold.tids:
            call()
            return
        caught: list[BaseException] = []

        def run() -> None:
            try:
                call()
            except BaseException as error:  # raised again below
                caught.append(error)

        thread = Thread(run)
        watch.until(lambda: not thread.alive, Deadline.never(), tick=_TICK)  # the call has a deadline
        thread.join()
        if caught:
            raise caught[0]

    def libraries(self, deadline: Deadline | None = None) -> list[Library]:
        """One in every living process, connected."""
        self.processes = [process for process in self.processes if process.alive]
        init = self._subject.init.pid if self._subject.init is not None else 1
        return self._libraries.connect(self.processes, init, deadline or Deadline.after(limits.QUERY))

    def _judge(self, pid: int, stats: Stats) -> None:
        what, who = self._subject.what, label(pid)
        todo = "run it without; see docs/compatibility.md"
        error: FailedPrecondition | None = None
        if number := stats.foreign_count + stats.ipc_opened:
            why = f"{who} has GPU memory of other processes ({number} allocations)"
            error = FailedPrecondition("gpu-memory-foreign", what, why, todo)
        elif number := stats.managed_count:
            why = f"{who} has managed memory (cuMemAllocManaged, {number} allocations)"
            error = FailedPrecondition("gpu-memory-managed", what, why, todo)
        elif number := stats.multicast:
            why = f"{who} has {number} multicast objects"
            error = FailedPrecondition("gpu-multicast", what, why, todo)
        if error is not None:
            raise Unsuited(error, for_good=True)

    def _find_gpus(self, found: Sequence[Library], deadline: Deadline) -> None:
        devices = each(found, lambda library: library.channel.devices(deadline))
        for pid, table in devices.items():
            self._gpus[pid] = {device.ordinal: _gpu(device) for device in table}
            self._used |= {_gpu(device) for device in table if device.contexts}
        if len(self.gpus) > 1:
            why = f"it uses {len(self.gpus)} GPUs"
            error = FailedPrecondition("gpus-several", self._subject.what, why, "use the engine driver")
            raise Unsuited(error)

    @property
    def gpus(self) -> list[str]:
        """The UUIDs of all GPUs on which a process has a context, which memory needs."""
        return sorted(self._used)

    # -- away ----------------------------------------------------------------------------------------

    def hand_over(self, deadline: Deadline) -> None:
        """Give all memory to the controllers; the gates are closed. Nothing is away before all is held."""
        self.let_go()  # of a first attempt
        memory: dict[int, list[Memory]] = {}

        def list_memory() -> None:
            found = self.libraries(deadline)
            self._find_gpus(found, deadline)
            memory.update(each(found, lambda library: _movable(library.channel.memory(deadline))))

        self.attend(list_memory)
        self.count = sum(map(len, memory.values()))
        self.bytes = sum(one.size for table in memory.values() for one in table)
        self._make_room()
        self._subject.journal.note(gpus=self.gpus)
        for gpu in self.gpus:
            controller = self.controllers.get(gpu, Deadline.after(_STARTS))
            self.attend(lambda: self._give(controller, gpu, memory, deadline))  # noqa: B023  called at once

    def _make_room(self) -> None:
        """For an fd of every allocation."""
        needed = self.count + _SPARE
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if needed > hard:
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, (needed, needed))
            except (OSError, ValueError):
                why = f"{self.count} allocations need as many open files, the limit is {hard}"
                todo = "raise it (ulimit -n) for whoever starts diapause-runc"
                error = FailedPrecondition("open-files", self._subject.what, why, todo)
                raise Unsuited(error) from None
        elif needed > soft:
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))

    def _give(
        self,
        controller: Controller,
        gpu: str,
        memory: Mapping[int, Sequence[Memory]],
        deadline: Deadline,
    ) -> None:
        container = self.controllers.container
        controller.begin(container, deadline)
        held = {(a.process, a.id): a.size for a in controller.held(container, deadline)}
        for library in self.libraries(deadline):
            mine = [
                one for one in memory.get(library.pid, ()) if self._gpus[library.pid].get(one.device) == gpu
            ]
            kept = [one.id for one in mine if _is_kept(one, library, held)]
            own = [one.id for one in mine if one.id not in set(kept)]
            fds = self._fds.setdefault(library.pid, {})
            fds.update(controller.give(container, library.inner, kept, deadline))
            fds.update(self._export(library, own, mine, deadline))
            listed = [_allocation(one, library) for one in mine]
            controller.watch(container, library.inner, library.process.pidfd, deadline)
            controller.take(container, listed, {id: fds[id] for id in own}, deadline)

    def _export(
        self, library: Library, ids: Sequence[int], memory: Sequence[Memory], deadline: Deadline
    ) -> dict[int, int]:
        """An fd of each; memory that was brought back by a controller that has gone moves first."""
        wanted = set(ids)
        orphans = [one.id for one in memory if one.id in wanted and one.flags & MemoryFlag.IMPORTED]
        if orphans:
            library.channel.rehome(orphans, deadline)
        return library.channel.export(ids, deadline)

    def drop(self, deadline: Deadline) -> None:
        """Have the processes let go of what was handed over."""
        dropped: dict[int, Dropped] = {}
        self.attend(
            lambda: dropped.update(
                each(self.libraries(deadline), lambda library: library.channel.drop(deadline))
            )
        )
        for pid, one in dropped.items():
            if one.count != len(self._fds.get(pid, {})):
                why = f"{label(pid)} let go of {one.count} allocations, not {len(self._fds.get(pid, {}))}"
                raise Internal("gpu-memory-lost", self._subject.what, why, "repeat it")

    def compare(self, copied: int) -> None:
        """Raises Internal unless so many bytes were handed over."""
        if copied != self.bytes:
            why = f"{copied} bytes of GPU memory were copied, not {self.bytes}"
            raise Internal("gpu-memory-lost", self._subject.what, why, "repeat it")

    # -- and back ------------------------------------------------------------------------------------

    def take_back(self, deadline: Deadline) -> None:
        """Undo hand_over() and drop(), as far as they came.

        After a checkpoint that counts the controllers hold on to the memory: they alone can give it to
        others, and it will be saved again.
        """
        self.attach(deadline)
        if self.keep:
            self.watch(deadline)
        else:
            self.forget()

    def attach(self, deadline: Deadline) -> None:
        """Give every process its memory back, from our fds, else from the controllers'.

        Raises Internal (gpu-memory-lost) when nobody has some of it any more.
        """
        self.attend(lambda: self._attach_all(deadline))

    def _attach_all(self, deadline: Deadline) -> None:
        moved.note(self.controllers.container)
        found = self.libraries(deadline)
        away = each(found, lambda library: _away(library.channel.memory(deadline)))
        for library in found:
            self._fetch(library, away.get(library.pid, {}), deadline)
        each(found, lambda library: self._attach(library, away.get(library.pid, {}), deadline))

    def _fetch(self, library: Library, away: Mapping[int, int], deadline: Deadline) -> None:
        """Get the fds that we lack from the controllers."""
        fds = self._fds.setdefault(library.pid, {})
        container = self.controllers.container
        for controller in self.controllers if away.keys() - fds.keys() else ():
            held = controller.held(container, deadline)
            sizes = {one.id: one.size for one in held if one.process == library.inner}
            theirs = [id for id in away if id not in fds and sizes.get(id) == away[id]]
            fds.update(controller.give(container, library.inner, theirs, deadline))
        if lost := away.keys() - fds.keys():
            why = f"{len(lost)} allocations of {label(library.pid)} are gone with their controller"
            raise Internal("gpu-memory-lost", self._subject.what, why, "restore it from a snapshot")

    def _attach(self, library: Library, away: Mapping[int, int], deadline: Deadline) -> None:
        fds = self._fds[library.pid]
        library.channel.attach({id: fds[id] for id in away}, deadline)

    def open(self, deadline: Deadline) -> None:
        """Open the gates of every process; the others, if one cannot."""
        self.attend(lambda: self._open_all(deadline))

    def _open_all(self, deadline: Deadline) -> None:
        each(self.libraries(deadline), lambda library: library.channel.open(deadline))

    def watch(self, deadline: Deadline) -> None:
        """Have the controllers let go of the memory of processes that end."""
        self.attend(lambda: self._watch_all(deadline))

    def _watch_all(self, deadline: Deadline) -> None:
        for library in self.libraries(deadline):
            for controller in self.controllers:
                controller.watch(self.controllers.container, library.inner, library.process.pidfd, deadline)

    def forget(self) -> list[str]:
        """Have the controllers let go of everything; what failed, in words."""
        return self.controllers.forget(Deadline.after(limits.QUERY))

    def disconnect(self) -> None:
        """Close the channels, before a dump."""
        self._libraries.close()

    def let_go(self) -> None:
        """Close our fds: the controllers have the memory, or the processes."""
        for fds in self._fds.values():
            for fd in fds.values():
                os.close(fd)
        self._fds.clear()

    def close(self) -> None:
        self.let_go()
        self._libraries.close()
        self.controllers.close()


def _gpu(device: Device) -> str:
    return names.uuid_text(device.uuid)


def _movable(memory: Iterable[Memory]) -> list[Memory]:
    return [one for one in memory if one.flags & MemoryFlag.ATTACHED and not one.flags & MemoryFlag.FOREIGN]


def _away(memory: Iterable[Memory]) -> dict[int, int]:
    """The sizes by id of what a process lacks."""
    return {one.id: one.size for one in memory if not one.flags & MemoryFlag.ATTACHED}


def _is_kept(one: Memory, library: Library, held: Mapping[tuple[int, int], int]) -> bool:
    """Whether a controller brought it back and has it still: only its fd can be given to others."""
    return bool(one.flags & MemoryFlag.IMPORTED) and held.get((library.inner, one.id)) == one.size


def _allocation(one: Memory, library: Library) -> Allocation:
    return Allocation(
        process=library.inner, device=0, id=one.id, address=one.address, size=one.size,
        flags=int(one.flags & _KEPT),
    )  # fmt: skip
