"""What a controller does when it is asked: one method a request."""

from __future__ import annotations

import os
import threading

from diapause.runtime import errors
from diapause.runtime.gpud import bring_back, target
from diapause.runtime.gpud.cuda import CudaError
from diapause.runtime.gpud.follow import Follower
from diapause.runtime.gpud.holdings import Held
from diapause.runtime.gpud.job import Job
from diapause.runtime.gpud.load import Load
from diapause.runtime.gpud.save import Save
from diapause.runtime.gpud.window import Window
from diapause.runtime.gpud.wire import BATCH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from diapause.runtime.gpud.arguments import Arguments
    from diapause.runtime.gpud.gpu import Gpu
    from diapause.runtime.gpud.holdings import Container, Holdings

    Answer = tuple[dict[str, Any], list[int]]  # the fds stay ours

_LONGEST_WAIT = 1000  # milliseconds of one wait
_LISTED = 500  # allocations in one answer of `held`


class Operations:
    """The state of a controller, and what can be done with it, from several threads."""

    def __init__(self, gpu: Gpu, holdings: Holdings, *, patience: float) -> None:
        self.holdings = holdings
        self._gpu = gpu
        self._patience = patience  # seconds that a load waits for GPU memory
        self._making = threading.Lock()  # two loads that wait for each other's memory would both fail
        self.stopping = False
        for container in holdings.all():  # what an earlier process left
            for process, pidfd in container.pidfds.items():
                Follower(container, process, pidfd)

    def activate(self) -> None:
        """In every thread that goes on to use the GPU."""
        self._gpu.device.activate()

    @property
    def healthy(self) -> bool:
        """Whether the context can still be used: after some errors of the GPU no call works any more."""
        try:
            self.activate()
            self._gpu.device.memory()
        except CudaError:
            return False
        return True

    def hello(self, _: Arguments) -> Answer:
        free, total = self._gpu.device.memory()
        return {
            "gpu": self._gpu.uuid, "pid": os.getpid(), "pool": self._gpu.pool.ready,
            "segments": self._gpu.segments.ready, "free": free, "total": total,
            "software": self._gpu.device.driver.software,
            "containers": sorted(c.name for c in self.holdings.all() if c.held)[:_LISTED],
        }, []  # fmt: skip

    def begin(self, arguments: Arguments) -> Answer:
        container = self.holdings.get(arguments.container())
        with container.lock:
            _not_busy(container)
            container.unmap()
            container.listed.clear()
            container.job = None
        return {}, []

    def take(self, arguments: Arguments) -> Answer:
        container = self.holdings.get(arguments.container())
        entries = arguments.allocations(BATCH)
        with container.lock:
            _not_busy(container)
            for process, number, *_, with_fd in entries:
                if not with_fd and (process, number) not in container.held:
                    raise _not_held(container.name, process, number)
            fds = iter(arguments.take_fds(sum(entry[5] for entry in entries)))
            batch, fresh = [], []
            for process, number, size, address, flags, with_fd in entries:
                if with_fd:
                    fresh.append(Held([process, number, size, address, flags], next(fds)))
                    batch.append(fresh[-1])
                    continue
                old = container.held[process, number]
                old.address, old.flags = address, flags
                batch.append(old)
            try:
                with self._gpu.calm.disturbed():
                    self._map(container, batch, [entry[2] for entry in entries])
            except BaseException:
                for held in fresh:
                    held.close()
                raise
            container.hold(fresh)
            container.listed.update((held.key, held) for held in batch)
        return {}, []

    def _map(self, container: Container, batch: list[Held], sizes: list[int]) -> None:
        """Map a batch side by side. The driver is the judge of every fd and of every size."""
        for held, size in zip(batch, sizes, strict=True):
            if held.size != size:
                raise _refused(held, f"{size} bytes now, {held.size} before")
            if size % self._gpu.device.granularity:
                raise _refused(held, f"{size} bytes, no multiple of {self._gpu.device.granularity}")
        if not batch:
            return
        device = self._gpu.device
        window = Window(device, sum(sizes))
        places = []
        held = batch[0]
        try:
            for held in batch:
                handle = device.import_(held.fd)
                if not device.is_here(handle):
                    device.release(handle)
                    raise _refused(held, "memory of another GPU")
                places.append(window.add(handle, held.size))
            window.open()
        except CudaError as e:
            window.close()
            raise _refused(held, f"{e}") from None
        except BaseException:
            window.close()
            raise
        for held, at in zip(batch, places, strict=True):
            held.at = at
        container.windows.append(window)

    def save(self, arguments: Arguments) -> Answer:
        container = self.holdings.get(arguments.container())
        sync = arguments.flag("sync", default=True)
        part = arguments.number("part", 0, target.MAX_PARTS - 1, 0)
        with container.lock:
            _not_busy(container)
            if any(not held.at for held in container.listed.values()):
                raise errors.FailedPrecondition(
                    "gpud-not-listed", f"save of container {container.name}",
                    "the list is of an earlier save", "begin a new one",
                )  # fmt: skip
            directory = arguments.take_directory()
            try:
                container.drop(lambda held: held.key not in container.listed)
                listed = sorted(container.listed.values(), key=lambda held: held.at)
                files = target.Target(directory, part=part)
                work = Save(self._gpu, files, listed, sync=sync)
                self._start(container, "save", listed, work, directory)
            except BaseException:
                os.close(directory)
                raise
        return {"bytes": sum(held.size for held in listed)}, []

    def load(self, arguments: Arguments) -> Answer:
        container = self.holdings.get(arguments.container())
        digest = arguments.text("digest", "")
        name = target.index_name(arguments.number("part", 0, target.MAX_PARTS - 1, 0))
        directory = arguments.take_directory()
        try:
            with container.lock:
                _not_busy(container)
                container.clear()
                index, found = bring_back.read_index(directory, name, digest)
                wanted = bring_back.Wanted(index, found, self._gpu.device.uuid)
                sources = bring_back.open_sources(directory, wanted.files)
                try:
                    with self._making, self._gpu.calm.disturbed():
                        held, window = bring_back.make(
                            self._gpu.device, wanted, patience=self._patience, nvml=self._gpu.nvml
                        )
                except BaseException:
                    for source in sources.values():
                        source.close()
                    raise
                container.windows = [window] if window else []
                container.hold(held)
                work = Load(self._gpu, sources, held, wanted)
                self._start(container, "load", held, work, -1)
        finally:
            os.close(directory)
        return {"bytes": wanted.bytes, "allocations": len(held)}, []

    def _start(
        self, container: Container, name: str, held: list[Held], work: Save | Load, directory: int
    ) -> None:
        """Have a job do the work, with the directory, if there is one, as its own."""

        def run(job: Job) -> dict[str, Any]:
            try:
                self._gpu.device.activate()
                with self._gpu.calm.disturbed():
                    return work.run(job)
            except BaseException:
                if isinstance(work, Load):  # what is half filled is worth nothing
                    with container.lock:
                        container.drop(lambda held: True)
                raise
            finally:
                container.unmap()  # nobody else does while the job runs
                container.listed.clear()
                if directory >= 0:
                    os.close(directory)

        container.job = Job(name, container.name, sum(each.size for each in held), run)
        container.job.start()

    def wait(self, arguments: Arguments) -> Answer:
        name = arguments.container()
        container = self.holdings.find(name)
        milliseconds = arguments.number("ms", 0, _LONGEST_WAIT)
        job = container.job if container else None
        if job is None:
            raise errors.NotFound(
                "gpud-no-job", f"copy of GPU memory of container {name}", "none was begun here",
                "begin it again: the controller was started anew",
            )  # fmt: skip
        if not job.wait(milliseconds / 1000):
            return {"done": False, "progress": job.progress, "bytes": job.total}, []
        if job.error is not None:
            raise job.error
        return {"done": True, **(job.outcome or {})}, []

    def held(self, arguments: Arguments) -> Answer:
        container = self.holdings.find(arguments.container())
        first = arguments.number("first", 0, 1 << 32)
        if container is None:
            return {"allocations": []}, []
        with container.lock:
            page = sorted(container.held)[first : first + _LISTED]
            found = [container.held[key] for key in page]
        return {"allocations": [each.values() for each in found]}, []

    def give(self, arguments: Arguments) -> Answer:
        name, process, ids = arguments.container(), arguments.process(), arguments.ids(BATCH)
        container = self.holdings.get(name)
        with container.lock:
            for number in ids:
                if (process, number) not in container.held:
                    raise _not_held(name, process, number)
            # Copies: another thread may let go of the memory before the answer is on its way.
            return {}, [os.dup(container.held[process, number].fd) for number in ids]

    def watch(self, arguments: Arguments) -> Answer:
        container = self.holdings.get(arguments.container())
        process = arguments.process()
        pidfd = arguments.take_pidfd()
        with container.lock:
            container.watch(process, pidfd)
            Follower(container, process, pidfd)
        return {}, []

    def forget(self, arguments: Arguments) -> Answer:
        if (container := self.holdings.find(arguments.container())) is not None:
            self.let_go(container)
        return {}, []

    def let_go(self, container: Container) -> None:
        """Everything of a container, and what is being done for it."""
        while True:
            job = container.job
            if job is not None:
                job.cancel()  # without the lock, which it may want
            with container.lock:
                if container.busy:
                    continue  # another one was begun in between
                container.clear()
                container.job = None
                break
        self.holdings.forget(container)

    def stop(self, _: Arguments) -> Answer:
        holding = sorted(container.name for container in self.holdings.all() if not container.empty)
        if holding:
            raise errors.FailedPrecondition(
                "gpud-in-use", f"stop of the controller of {self._gpu.uuid}",
                f"it holds GPU memory of {len(holding)} containers, {holding[0]} among them",
                "end them first",
            )  # fmt: skip
        self.stopping = True
        return {}, []


NAMES = frozenset({
    "hello", "begin", "take", "save", "load", "wait", "held", "give", "watch", "forget", "stop",
})  # fmt: skip


def _not_busy(container: Container) -> None:
    if container.busy:
        raise errors.Unavailable(
            "gpud-busy", f"container {container.name}", "its GPU memory is being copied", "wait for the end"
        )


def _not_held(container: str, process: int, number: int) -> errors.NotFound:
    return errors.NotFound(
        "gpud-not-held", f"container {container}", f"allocation {number} of process {process} is not held"
    )


def _refused(held: Held, why: str) -> errors.FailedPrecondition:
    return errors.FailedPrecondition(
        "gpud-refused", f"hand-over of allocation {held.id} of process {held.process}", why,
        "the program may be hostile or damaged",
    )  # fmt: skip
