"""Undoing a checkpoint by the libraries that was cut off: memory back, gates open, as it was found."""

from __future__ import annotations

from diapause.runtime.engine import controllers, held
from diapause.runtime.engine import subject as limits
from diapause.runtime.engine.driver.calls import Cudactl
from diapause.runtime.engine.exchange import Exchange
from diapause.runtime.engine.processes import GpuProcess
from diapause.runtime.engine.request import Settings
from diapause.runtime.engine.steps import evacuate, gate, lock
from diapause.runtime.linux import proc
from diapause.runtime.linux.deadline import Deadline
from diapause.runtime.store.local import Local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from diapause.runtime.engine.subject import Subject


def checkpoint(subject: Subject, facts: Mapping[str, Any], container: str) -> None:
    """Whatever had been done. The fds of the dead engine are gone: the controllers have others.

    Raises Internal (gpu-memory-lost) when a controller died as well; the gates stay closed then.
    """
    steps = facts["steps"]
    subject.init = GpuProcess(facts["init"][0], holds_device=False, library=False)
    subject.stack.callback(subject.init.close)
    exchange = Exchange(subject, container, facts["libcuda"])
    subject.stack.callback(exchange.close)
    exchange.add(adopt(subject, facts))
    if "quiesce" in steps:
        subject.thaw()
        if "lock" in steps:
            unlock(subject, facts)
        for gpu in facts.get("gpus", []):
            exchange.controllers.find(gpu)
        deadline = Deadline.after(subject.settings.restore_timeout)
        exchange.keep = bool(facts.get("keep"))
        exchange.take_back(deadline)
        exchange.open(deadline)
        exchange.disconnect()
    if "gate" in steps and subject.found_frozen:
        subject.freeze()
        gate.unshut(exchange.processes)
    held.let_go(subject, frozen=subject.found_frozen)


def adopt(subject: Subject, facts: Mapping[str, Any]) -> list[GpuProcess]:
    """Give the subject the GPU processes that a journal names; returns all whose gates were closed."""
    driven = _living(facts["gpu"])
    subject.add(driven)
    gated = _living([[pid, start, 0] for pid, start in facts["gated"] if pid not in subject.pids])
    for process in gated:
        subject.stack.callback(process.close)
    return [*driven, *gated]


def _living(entries: list[list[int]]) -> list[GpuProcess]:
    found = []
    for pid, start, tid in entries:
        if proc.is_alive(pid, start):
            process = GpuProcess(pid, holds_device=True, library=True)
            process.tid = tid
            found.append(process)
    return found


def unlock(subject: Subject, facts: Mapping[str, Any]) -> None:
    """The driver's restore and unlock of whatever is not running for it."""
    subject.calls = Cudactl(facts["libcuda"], subject.watch)
    subject.stack.callback(subject.calls.close)
    subject.calls.ready(Deadline.after(limits.READY))
    evacuate.reload(subject)
    lock.Lock(subject).undo()


def discard(facts: Mapping[str, Any]) -> None:
    """Remove what a checkpoint that does not count has put into the store."""
    if name := facts.get("stored"):
        settings = Settings(store_dir=facts["store_dir"], memory_dir=facts["memory_dir"])
        store = Local.of(settings)
        store.remove(name, missing_ok=True)
        store.sweep()


def forget(facts: Mapping[str, Any], container: str) -> None:
    """The container is gone: nobody needs its device memory."""
    controllers.forget(list(facts.get("gpus", [])), container, Deadline.after(limits.QUERY))
