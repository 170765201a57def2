"""Asking the controller of a GPU, which is started if it does not run.

The engine's use of it, for one container and one GPU:

    with connect(gpu, libcuda, deadline) as controller:
        controller.begin(container, deadline)
        controller.take(container, allocations, fds, deadline)      # for each process
        controller.save(container, directory, deadline)             # returns at once
        saved = controller.wait(container, deadline)                # before the commit

    with connect(…) as controller:
        controller.load(container, directory, deadline)             # returns at once
        loaded = controller.wait(container, deadline)
        fds = controller.give(container, process, ids, deadline)
        controller.watch(container, process, pidfd, deadline)
"""

from __future__ import annotations

import os
import socket

from diapause.runtime import errors
from diapause.runtime.gpud import names, start, wire
from diapause.runtime.store.gpu_index import Allocation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import TracebackType
    from typing import Any

    from diapause.runtime.linux.deadline import Deadline

_WAIT = 1.0  # seconds after which the controller answers a wait that is not over
_GRACE = 5.0  # seconds more that an answer may take


class Hello:
    """What a controller says about itself."""

    __slots__ = ("containers", "free", "gpu", "pid", "pool", "segments", "software", "total")

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.gpu: str = _typed(values, "gpu", str)  # its UUID
        self.pid: int = _typed(values, "pid", int)
        self.pool: int = _typed(values, "pool", int)  # bytes of pinned memory that are ready
        self.segments: int = _typed(values, "segments", int)  # bytes ready in the memory tier
        self.free: int = _typed(values, "free", int)  # bytes of GPU memory
        self.total: int = _typed(values, "total", int)
        self.software: bool = _typed(values, "software", bool)
        self.containers: list[str] = _typed(values, "containers", list)  # of which it holds memory


class Outcome:
    """What a save or a load has done."""

    __slots__ = ("bytes", "files", "index", "milliseconds", "phases", "way", "written", "zero")

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.bytes: int = _typed(values, "bytes", int)  # of device memory altogether
        self.zero: int = _typed(values, "zero", int)  # of these, in blocks that are all zeros
        self.written: int = _typed(values, "written", int)  # into files, or read from them
        self.milliseconds: int = _typed(values, "ms", int)
        self.way: str = _typed(values, "way", str)  # segments | direct | buffered
        self.index: str = _typed(values, "index", str)  # digest of the index
        self.phases: dict[str, int] = _typed(values, "phases", dict)  # milliseconds since the start
        self.files: list[tuple[str, int]] = [  # names in the directory and sizes in bytes
            (_entry(entry, 0, str), _entry(entry, 1, int)) for entry in _typed(values, "files", list)
        ]


class Controller:
    """A connection; close() it. Everything waits until the deadline that is handed in at most.

    Every method raises what the controller answers: Unavailable (code gpu-memory when the GPU has not
    enough now), FailedPrecondition, InvalidArgument, NotFound, Internal; and Unavailable with the code
    gpud-no-answer or gpud-gone when none comes.
    """

    def __init__(self, gpu: str, end: socket.socket) -> None:
        self.gpu = gpu
        self._end = end
        self._sequence = 0

    def hello(self, deadline: Deadline) -> Hello:
        answer, _ = self._call("hello", deadline)
        return Hello(answer)

    def begin(self, container: str, deadline: Deadline) -> None:
        """Begin a new list of what is to be saved. What is held of the container stays held."""
        self._call("begin", deadline, container=container)

    def take(
        self, container: str, allocations: Sequence[Allocation], fds: Mapping[int, int], deadline: Deadline
    ) -> None:
        """Put allocations of one process on the list, with the fds of their memory by id.

        The controller confirms each size with the driver and holds copies of the fds from here on; the
        caller keeps its own. An allocation without an fd must be held already. Those that `begin` found
        and nobody puts on the list are let go by `save`. `device` of an allocation means nothing here.
        """
        for start_at in range(0, len(allocations), wire.BATCH):
            batch = allocations[start_at : start_at + wire.BATCH]
            sent = [a for a in batch if a.id in fds]
            listed = [
                [a.process, a.id, a.size, a.address, a.flags, int(a.id in fds)] for a in batch
            ]  # fmt: skip
            self._call("take", deadline, [fds[a.id] for a in sent], container=container, allocations=listed)

    def save(
        self, container: str, directory: int, deadline: Deadline, *, sync: bool = True, part: int = 0
    ) -> None:
        """Start to write what is on the list into files in `directory` (an fd), the index last.

        Returns at once; the caller must keep the memory unchanged until wait() has returned. `sync`:
        the files are on the disk then. `part`: position of this GPU among those of the
        snapshot, each of which has an index and data files of its own.
        """
        self._call("save", deadline, [directory], container=container, sync=sync, part=part)

    def load(
        self, container: str, directory: int, deadline: Deadline, *, digest: str = "", part: int = 0
    ) -> list[Allocation]:
        """Start to bring back what an index in `directory` (an fd) names; returns its allocations.

        Returns as soon as the GPU memory is there; nothing may be used before wait() has returned: it
        verifies every block. `digest` is what the index must be. Raises Unavailable (gpu-memory) when
        the GPU had no room for as long as the configuration allows.
        """
        answer, _ = self._call("load", deadline, [directory], container=container, digest=digest, part=part)
        count = _typed(answer, "allocations", int)
        found = self.held(container, deadline)
        if len(found) != count:
            raise self._nonsense("load", f"{count} allocations, {len(found)} are held")
        return found

    def wait(
        self, container: str, deadline: Deadline, progress: Callable[[int, int], None] | None = None
    ) -> Outcome:
        """Wait for the end of a save or a load. `progress` is told the bytes done and all of them, about
        every second. Raises the error that ended it, and Unavailable at the deadline, while it goes on.
        """
        while True:
            patience = min(_WAIT, deadline.remaining)
            answer, _ = self._call("wait", deadline, container=container, ms=int(patience * 1000))
            if _typed(answer, "done", bool):
                return Outcome(answer)
            if progress is not None:
                progress(_typed(answer, "progress", int), _typed(answer, "bytes", int))
            if deadline.expired:
                raise errors.Unavailable(
                    "gpud-slow", f"copy of GPU memory of container {container}", "it did not end in time",
                    "allow more time, or write to a faster disk",
                )  # fmt: skip

    def held(self, container: str, deadline: Deadline) -> list[Allocation]:
        """What the controller holds of a container, by process and id; `device` is 0."""
        found: list[Allocation] = []
        while True:
            answer, _ = self._call("held", deadline, container=container, first=len(found))
            page = _typed(answer, "allocations", list)
            found += [
                Allocation(
                    process=_entry(e, 0, int), id=_entry(e, 1, int), size=_entry(e, 2, int),
                    address=_entry(e, 3, int), flags=_entry(e, 4, int), device=0,
                )
                for e in page
            ]  # fmt: skip
            if not page:
                return found

    def give(self, container: str, process: int, ids: Iterable[int], deadline: Deadline) -> dict[int, int]:
        """An fd for each of the allocations, for the process to import. The caller owns them."""
        wanted = list(ids)
        given: dict[int, int] = {}
        try:
            for start_at in range(0, len(wanted), wire.BATCH):
                batch = wanted[start_at : start_at + wire.BATCH]
                _, fds = self._call("give", deadline, container=container, process=process, ids=batch)
                if len(fds) != len(batch):
                    wire.close_all(fds)
                    raise self._nonsense("give", f"{len(fds)} file descriptors for {len(batch)}")
                given.update(zip(batch, fds, strict=True))
        except BaseException:
            wire.close_all(list(given.values()))
            raise
        return given

    def watch(self, container: str, process: int, pidfd: int, deadline: Deadline) -> None:
        """Let go of what is held of a process as soon as it ends. The caller keeps its pidfd."""
        self._call("watch", deadline, [pidfd], container=container, process=process)

    def forget(self, container: str, deadline: Deadline) -> None:
        """Stop what runs for a container and let go of everything that is held of it. Idempotent."""
        self._call("forget", deadline, container=container)

    def stop(self, deadline: Deadline) -> None:
        """End the controller, which refuses while it holds memory (gpud-in-use)."""
        self._call("stop", deadline)

    def _call(
        self, op: str, deadline: Deadline, fds: Sequence[int] = (), **arguments: object
    ) -> tuple[dict[str, Any], list[int]]:
        self._sequence += 1
        try:
            self._end.settimeout(max(deadline.remaining, 0.001) + (_GRACE if op == "wait" else 0))
            wire.send(self._end, {"op": op, "seq": self._sequence, **arguments}, fds)
            while True:
                received = wire.receive(self._end)
                if received is None:
                    raise self._gone(op, "it closed the connection")
                answer, given = received
                if answer.get("seq") == self._sequence:
                    break
                wire.close_all(given)  # of a call that had not the patience to wait for it
        except TimeoutError:
            raise errors.Unavailable(
                "gpud-no-answer", self._what(op), "no answer before the deadline",
                f"look at {names.directory(self.gpu)}/log",
            ) from None  # fmt: skip
        except wire.WireError as e:
            raise self._nonsense(op, str(e)) from None
        except OSError as e:
            raise self._gone(op, str(e.strerror)) from None
        if "error" in answer:
            wire.close_all(given)
            try:
                error = wire.error_from(answer["error"])
            except wire.WireError as e:
                raise self._nonsense(op, str(e)) from None
            raise error
        if given and op != "give":
            wire.close_all(given)
            raise self._nonsense(op, "file descriptors that nobody asked for")
        return answer, given

    def _what(self, op: str) -> str:
        return f"ask the controller of {self.gpu} for {op}"

    def _gone(self, op: str, why: str) -> errors.Unavailable:
        return errors.Unavailable(
            "gpud-gone", self._what(op), why, f"look at {names.directory(self.gpu)}/log"
        )

    def _nonsense(self, op: str, why: str) -> errors.Internal:
        return errors.Internal("gpud-bad-answer", self._what(op), why)

    def close(self) -> None:
        self._end.close()

    def __enter__(self) -> Controller:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def connect(gpu: str, libcuda: str, deadline: Deadline) -> Controller:
    """The controller of the GPU with this UUID, started if need be on the driver library `libcuda`.

    It reads the configuration itself. Raises FailedPrecondition (gpud-no-gpu) when it cannot use the GPU,
    in exclusive compute mode for instance, and Unavailable when it does not answer in time.
    """
    while True:
        end = _try(gpu)
        if end is None:
            end = start.start(gpu, libcuda, deadline, lambda: _try(gpu))
        controller = Controller(gpu, end)
        try:
            found = controller.hello(deadline)
        except errors.Unavailable as e:
            controller.close()
            if e.code != "gpud-gone" or deadline.expired:
                raise
            continue  # it was idle, and ended just now
        except BaseException:
            controller.close()
            raise
        if found.gpu != gpu:
            controller.close()
            what = f"connect to the controller of {gpu}"
            raise errors.Internal("gpud-other-gpu", what, f"it has {found.gpu}")
        return controller


def running(gpu: str) -> Controller | None:
    """The controller of a GPU if it runs; none is started."""
    end = _try(gpu)
    return None if end is None else Controller(gpu, end)


def _try(gpu: str) -> socket.socket | None:
    try:
        directory = os.open(names.directory(gpu), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
    try:
        end.connect(names.near(directory))
    except (FileNotFoundError, ConnectionRefusedError):
        end.close()
        return None
    except BaseException:
        end.close()
        raise
    finally:
        os.close(directory)
    return end


def _typed(values: Mapping[str, Any], name: str, kind: type) -> Any:
    value = values.get(name)
    if type(value) is not kind:
        raise errors.Internal("gpud-bad-answer", "answer of the controller", f"{name} is {str(value)[:80]}")
    return value


def _entry(values: Any, place: int, kind: type) -> Any:
    if not isinstance(values, list) or len(values) <= place or type(values[place]) is not kind:
        raise errors.Internal("gpud-bad-answer", "answer of the controller", f"entry {str(values)[:80]}")
    return values[place]
