"""`suspend`: a container's GPU memory goes to the store, and its processes stand still without a GPU."""

from __future__ import annotations

from diapause.runtime.container import Container
from diapause.runtime.engine import lease, preflight, processes, recover, report, runc, suspended
from diapause.runtime.engine.driver.calls import Cudactl
from diapause.runtime.engine.exchange import Unsuited
from diapause.runtime.engine.handover import Handover
from diapause.runtime.engine.journal import Journal
from diapause.runtime.engine.place import Stored
from diapause.runtime.engine.plan import Plan
from diapause.runtime.engine.processes import GpuProcess
from diapause.runtime.engine.steps.park import Park
from diapause.runtime.engine.subject import READY, Subject
from diapause.runtime.engine.supervise import supervised
from diapause.runtime.errors import FailedPrecondition
from diapause.runtime.linux import freezer
from diapause.runtime.linux.deadline import Deadline
from diapause.runtime.store import entry
from diapause.runtime.store.local import Local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from diapause.runtime.engine.place import Place
    from diapause.runtime.engine.request import SuspendRequest
    from diapause.runtime.engine.watch import Watch


def run(request: SuspendRequest) -> int:
    """See api.suspend."""
    return supervised(request, f"suspend {request.id}", lambda watch: _Suspend(request, watch).run())


class _Suspend:
    def __init__(self, request: SuspendRequest, watch: Watch) -> None:
        self._request = request
        self._watch = watch
        self._what = watch.what
        self._container = Container(request.root, request.id)
        self._journal = Journal(f"{self._container.directory}/journal")
        self._subject = Subject(
            watch=watch, settings=request.settings, state=dict(request.state), journal=self._journal
        )
        self._facts: dict[str, Any] = {}

    def run(self) -> int:
        request, subject = self._request, self._subject
        with subject.stack:
            subject.stack.enter(lease.take(self._container, "suspend"))
            recover.replay(self._container, self._watch)
            suspended.refuse(self._container, self._what)
            handover = self._prepare()
            subject.phases.add("prepare", subject.phases.since_start())
            steps = handover.steps(False)[:-1]  # no dump: nothing needs room in its directory
            if request.light:
                steps = [step for step in steps if step.name not in ("lock", "residue")]
            steps.append(Park(subject, handover, self._container, self._facts))
            plan = Plan(steps, journal=self._journal, watch=self._watch, phases=subject.phases)
            try:
                plan.run()
            except Unsuited as unsuited:
                raise unsuited.error from None
            self._journal.remove()
            subject.phases.add("total", subject.phases.since_start())
            report.phases(request, "suspend", subject.phases)
        return 0

    def _prepare(self) -> Handover:
        request, subject = self._request, self._subject
        state = runc.state(request.root, request.id, self._what)
        preflight.running(state, self._what)
        subject.freezer = freezer.find(state.cgroup_paths, state.init)
        subject.found_frozen = subject.freezer.frozen()
        subject.init = GpuProcess(state.init, holds_device=False, library=False)
        subject.stack.callback(subject.init.close)
        found = processes.gpu_processes(subject.freezer.path, subject.devices)
        if not found:
            why = "no process of it uses the GPU"
            raise FailedPrecondition("gpu-not-used", self._what, why, "pause it")
        intercept = preflight.libraries(subject, found)
        preflight.traced(found, self._what)
        libcuda = request.settings.libcuda or request.state["driver"]["libcuda"]["path"]
        self._facts = {
            "cgroup": subject.freezer.path,
            "frozen": subject.found_frozen,
            "init": [state.init, subject.init.start],
            "libcuda": libcuda,
            "restore_timeout": request.settings.restore_timeout,
            "light": request.light,
        }
        self._journal.note(operation="suspend", image="", stopped=[], gpu=[], **self._facts)
        subject.calls = Cudactl(libcuda, self._watch)
        subject.stack.callback(subject.calls.close)
        subject.add(found)
        subject.calls.ready(Deadline.after(READY))
        handover = Handover(subject, request, self._container.key, libcuda, self._place)
        subject.stack.callback(handover.close)
        if not intercept or not handover.accepts(found):
            why = "its GPU memory cannot change hands"
            todo = "see the log; suspend works with the engine intercept and its library in every process"
            raise FailedPrecondition("suspend-unsupported", self._what, why, todo)
        return handover

    def _place(self, size: int) -> Place:
        name = suspended.store_name(self._container)
        Local.of(self._request.settings).remove(name, missing_ok=True)  # of a container that is gone
        return Stored(self._request, size, name=name, kind=entry.SUSPENDED)
