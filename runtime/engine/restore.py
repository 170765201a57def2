"""`restore`: load with every thread stopped, give the GPU back, verify, go."""

from __future__ import annotations

from diapause.runtime.container import Container
from diapause.runtime.engine import criu, halfway, identity, lease, preflight, report, runc
from diapause.runtime.engine.driver.calls import Cudactl
from diapause.runtime.engine.journal import Journal
from diapause.runtime.engine.plan import Plan
from diapause.runtime.engine.probe import Probe
from diapause.runtime.engine.steps.go import Go
from diapause.runtime.engine.steps.load import Load
from diapause.runtime.engine.steps.reload import Reload
from diapause.runtime.engine.steps.restrict import Restrict
from diapause.runtime.engine.subject import QUERY, Subject
from diapause.runtime.engine.supervise import supervised
from diapause.runtime.errors import AlreadyExists, FailedPrecondition
from diapause.runtime.linux import signals
from diapause.runtime.linux.deadline import Deadline
from diapause.runtime.store.snapshot import Snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from diapause.runtime.engine.plan import Step
    from diapause.runtime.engine.request import RestoreRequest
    from diapause.runtime.engine.takeback import TakeBack
    from diapause.runtime.engine.watch import Watch
    from diapause.runtime.linux.locks import Lock
    from diapause.runtime.linux.spawn import Child
    from diapause.runtime.store.manifest import File

_SMALL = 1 << 20  # bytes up to which a file is verified before anything starts


def run(request: RestoreRequest) -> int:
    """See api.restore."""
    return supervised(request, f"restore {request.id}", lambda watch: _Restore(request, watch).run())


class _Restore:
    def __init__(self, request: RestoreRequest, watch: Watch) -> None:
        self._request = request
        self._watch = watch
        self._what = watch.what
        self._container = Container(request.root, request.id)
        self._env: Mapping[str, str] = {}
        self._journal = Journal(f"{self._container.directory}/journal")
        self._subject = Subject(
            watch=watch, settings=request.settings, state=dict(request.state), journal=self._journal
        )

    def run(self) -> int:
        request, subject = self._request, self._subject
        with subject.stack:
            lock = subject.stack.enter(lease.take(self._container, "restore"))
            if self._container.has_journal:
                from diapause.runtime.engine import recover

                recover.replay(self._container, self._watch)
            if runc.exists(request.root, request.id):
                why = "a container with this id exists"
                raise AlreadyExists("container-exists", self._what, why, "delete it, or choose another id")
            try:
                load = self._restore()
            except BaseException:
                if not self._journal.exists:  # what could not be undone has to be found again
                    self._container.forget()
                raise
            if load.child is None or request.detach:
                return 0
            return self._stay(load.child, lock)

    def _restore(self) -> Load:
        request, subject = self._request, self._subject
        preflight.flags(request, self._what)
        self._env = runc.environment(request.settings, self._what)
        criu_path = criu.find(self._env, self._what)
        probe = Probe([criu_path, "--version"], self._env, self._watch.sigmask)
        snapshot = subject.stack.enter(Snapshot.open(request.image_path))
        document = snapshot.document
        identity.compare(document, request.state, self._what)
        gpu = any(process.gpu for process in document.processes)
        if gpu:
            self._start_driver()
        back = self._by_libraries(snapshot)
        snapshot.verify(_is_small)
        criu.check_version(probe.output(Deadline.after(QUERY)), criu_path, self._what)
        stopped = [process.pid for process in document.processes if process.stopped]
        facts = halfway.before(request)
        self._note(stopped, facts)
        load = Load(
            subject,
            request,
            self._container,
            env=self._env,
            facts=facts,
            document=document,
            verify=lambda: snapshot.verify(_is_large),
        )

        def verified() -> None:
            if load.verification is not None:
                load.verification.result()

        steps: list[Step] = [load, Restrict(subject, request.bundle)]
        if gpu:
            steps.append(Reload(subject))
        if back is not None:
            steps = [back.fetch, *steps, back.attach]
        steps.append(Go(subject, stopped, verified))
        plan = Plan(steps, journal=self._journal, watch=self._watch, phases=subject.phases)
        subject.phases.add("prepare", subject.phases.since_start())
        plan.run()
        self._journal.remove()
        subject.phases.add("total", subject.phases.since_start())
        report.phases(request, "restore", subject.phases)
        return load

    def _start_driver(self) -> None:
        """The driver initialises itself while we verify and CRIU restores."""
        driver = self._request.state.get("driver")
        if not driver or not self._request.state.get("devices"):
            why = "the snapshot has processes with a GPU, the container has none"
            raise FailedPrecondition(
                "gpu-not-requested", self._what, why, "ask for the GPU as at the first start"
            )
        libcuda = self._request.settings.libcuda or driver["libcuda"]["path"]
        self._subject.calls = Cudactl(libcuda, self._watch)
        self._subject.stack.callback(self._subject.calls.close)

    def _by_libraries(self, snapshot: Snapshot) -> TakeBack | None:
        """How device memory comes back that the libraries gave away; None if they did not."""
        if snapshot.document.raw["evacuated"] != "intercept":
            return None
        from diapause.runtime.engine.takeback import TakeBack

        request = self._request
        libcuda = request.settings.libcuda or request.state["driver"]["libcuda"]["path"]
        back = TakeBack(self._subject, request, self._container.key, libcuda, snapshot)
        self._subject.stack.enter(back)
        return back

    def _note(self, stopped: list[int], facts: Mapping[str, Any]) -> None:
        request = self._request
        self._journal.note(
            operation="restore",
            runc=request.runc,
            global_args=list(request.global_args),
            stopped=stopped,
            **facts,
        )

    def _stay(self, child: Child, lock: Lock) -> int:
        """Without --detach: pass signals on until the container ends, and return its status.

        The operation is over, so the container is free for the next one.
        """
        del lock  # closed with the stack
        watch = self._watch
        watch.shielded = True
        for number in (signals.SIGTERM, signals.SIGINT, signals.SIGHUP):
            watch.on_signal(number, child.kill)
        self._subject.stack.close()
        watch.watch(child.pidfd, lambda: None)
        watch.until(lambda: child.poll() is not None, Deadline.never())  # as long as the container lives
        return child.status or 0


def _is_small(file: File) -> bool:
    return file.size <= _SMALL


def _is_large(file: File) -> bool:
    return not _is_small(file)
