"""`resume` of a suspended container: its memory comes back from the store, and it runs."""

from __future__ import annotations

from diapause.runtime.container import Container
from diapause.runtime.engine import lease, preflight, reclaim, recover, report, suspended
from diapause.runtime.engine.exchange import Exchange
from diapause.runtime.engine.journal import Journal
from diapause.runtime.engine.processes import GpuProcess
from diapause.runtime.engine.request import Settings
from diapause.runtime.engine.subject import Subject
from diapause.runtime.engine.supervise import supervised
from diapause.runtime.errors import Unavailable
from diapause.runtime.linux import freezer, proc
from diapause.runtime.linux.deadline import Deadline
from diapause.runtime.store.gpu_data import GpuData
from diapause.runtime.store.local import Local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from diapause.runtime.engine.request import Request
    from diapause.runtime.engine.watch import Watch

_STARTS = 60.0  # seconds for a controller to start


def run(request: Request) -> int:
    """See api.resume."""
    return supervised(request, f"resume {request.id}", lambda watch: _resume(request, watch))


def _resume(request: Request, watch: Watch) -> int:
    container = Container(request.root, request.id)
    with lease.take(container, "resume"):
        recover.replay(container, watch)
        facts = suspended.read(container)
        if facts is None:  # the replay has resumed it
            return 0
        journal = Journal(f"{container.directory}/journal")
        journal.note(operation="resume")
        journal.begin("resume")
        try:
            subject = complete(container, facts, watch, journal)
        finally:
            journal.remove()  # a failure leaves it suspended
        report.phases(request, "resume", subject.phases)
    return 0


def complete(container: Container, facts: Mapping[str, Any], watch: Watch, journal: Journal) -> Subject:
    """Resume, however far an earlier attempt came; when it fails the container stays suspended."""
    settings = Settings(
        restore_timeout=facts["restore_timeout"], store_dir=facts["store_dir"], memory_dir=facts["memory_dir"]
    )
    state = container.load_state() or {}
    subject = Subject(watch=watch, settings=settings, state=state, journal=journal)
    pid, start = facts["init"]
    if not proc.is_alive(pid, start):
        suspended.remove(container)
        raise preflight.ended(watch.what)
    with subject.stack:
        subject.freezer = freezer.reopen(facts["cgroup"])
        subject.init = GpuProcess(pid, holds_device=False, library=False)
        subject.stack.callback(subject.init.close)
        exchange = Exchange(subject, container.key, facts["libcuda"])
        subject.stack.callback(exchange.close)
        exchange.add(reclaim.adopt(subject, facts))
        store = Local.of(settings)
        try:
            _bring_back(subject, exchange, store, facts)
        except BaseException:
            subject.freeze()
            exchange.forget()
            raise
        suspended.remove(container)
        subject.phases.add("total", subject.phases.since_start())
        exchange.disconnect()
    if facts["stored"]:
        try:
            store.remove(facts["stored"], missing_ok=True)
        except Unavailable:
            pass  # somebody looks at it
    return subject


def _bring_back(subject: Subject, exchange: Exchange, store: Local, facts: Mapping[str, Any]) -> None:
    """In the order of a restore: load beside the driver's part, attach, open."""
    deadline = Deadline.after(subject.settings.restore_timeout)
    key = exchange.controllers.container
    held = store.open(facts["stored"]) if facts["stored"] else None
    try:
        if held is not None:
            GpuData.of_directory(held.path, held.fd, facts["index"])  # whole, as far as names and sizes go
            for gpu in facts["gpus"]:
                controller = exchange.controllers.get(gpu, Deadline.after(_STARTS))
                controller.forget(key, deadline)
                controller.load(key, held.fd, deadline, digest=facts["index"])
        _note(subject, "load")
        subject.thaw()
        if not facts["light"]:
            reclaim.unlock(subject, facts)
        _note(subject, "driver")
        for controller in exchange.controllers:
            controller.wait(key, deadline, lambda *_: subject.watch.check())
        exchange.attach(deadline)
        exchange.watch(deadline)
        exchange.open(deadline)
        _note(subject, "attach")
    finally:
        if held is not None:
            held.close()


def _note(subject: Subject, name: str) -> None:
    """A phase that ends now and began with the end of the one before."""
    done = sum(float(entry["ms"]) for entry in subject.phases.entries()) / 1000
    subject.phases.add(name, subject.phases.since_start() - done)
