"""`checkpoint`: quiesce, evacuate, dump, commit; and back again where the container goes on."""

from __future__ import annotations

import os
import sys
import time

from diapause.runtime import sha256
from diapause.runtime.container import Container
from diapause.runtime.engine import criu, lease, logs, moved, preflight, processes, report, runc
from diapause.runtime.engine.driver.calls import Cudactl
from diapause.runtime.engine.journal import Journal
from diapause.runtime.engine.plan import Plan
from diapause.runtime.engine.probe import Probe
from diapause.runtime.engine.processes import GpuProcess
from diapause.runtime.engine.steps.dump import Dump
from diapause.runtime.engine.steps.evacuate import Evacuate
from diapause.runtime.engine.steps.hold import Hold
from diapause.runtime.engine.steps.launch import Launch
from diapause.runtime.engine.steps.lock import Lock
from diapause.runtime.engine.steps.seal import Seal
from diapause.runtime.engine.steps.space import Space
from diapause.runtime.engine.steps.thaw import Thaw
from diapause.runtime.engine.subject import QUERY, READY, Subject
from diapause.runtime.engine.supervise import supervised
from diapause.runtime.errors import FailedPrecondition, Internal
from diapause.runtime.linux import freezer
from diapause.runtime.linux.deadline import Deadline
from diapause.runtime.store import layout, manifest, snapshot
from diapause.runtime.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from diapause.runtime.engine.handover import Handover
    from diapause.runtime.engine.plan import Step
    from diapause.runtime.engine.request import CheckpointRequest
    from diapause.runtime.engine.watch import Watch
    from diapause.runtime.store.manifest import Manifest, Process


def run(request: CheckpointRequest) -> int:
    """See api.checkpoint."""
    return supervised(request, f"checkpoint {request.id}", lambda watch: _Checkpoint(request, watch).run())


class _Checkpoint:
    def __init__(self, request: CheckpointRequest, watch: Watch) -> None:
        self._request = request
        self._watch = watch
        self._what = watch.what
        self._container = Container(request.root, request.id)
        self._env = runc.environment(request.settings, self._what)
        self._journal = Journal(f"{self._container.directory}/journal")
        self._subject = Subject(
            watch=watch, settings=request.settings, state=dict(request.state), journal=self._journal
        )
        self._listed: Sequence[Process] = ()
        self._criu_version = ""
        self._spec_digest = ""
        self._tools: dict[str, str] = {}
        self._handover: Handover | None = None  # the way by the libraries, if it is taken

    def run(self) -> int:
        request, subject = self._request, self._subject
        with subject.stack:
            preflight.flags(request, self._what)
            preflight.image_directory(request, self._what)
            subject.stack.enter(lease.take(self._container, "checkpoint"))
            if self._container.has_journal:
                from diapause.runtime.engine import recover

                recover.replay(self._container, self._watch)
            self._prepare()
            subject.phases.add("prepare", subject.phases.since_start())
            plan, dump = self._save()
            if request.leave_running:
                self._go_on(plan, dump)
            else:
                self._journal.remove()
                if self._handover is not None:
                    self._handover.forget()
                if dump.status == 0:
                    self._container.forget()
            subject.phases.add("total", subject.phases.since_start())
            report.phases(request, "checkpoint", subject.phases)
            if dump.status != 0:
                raise self._failed_late(dump)
            if dump.stderr:
                sys.stderr.write(dump.stderr)
                sys.stderr.flush()
            return 0

    def _failed_late(self, dump: Dump) -> Internal:
        """runc failed when the snapshot was complete and the container had ended: nothing to undo."""
        from diapause.runtime.engine import kept

        request = self._request
        log = logs.keep(request.id, [f"{request.work_path or request.image_path}/dump.log"])
        why = "the snapshot is complete and the container has ended, but runc failed after that"
        todo = kept.keep(request.image_path, request.settings, request.id)
        error = Internal("runc-failed-late", self._what, why, todo, log=log)
        if dump.stderr:
            error.add_note(dump.stderr.rstrip("\n"))
        return error

    def _prepare(self) -> None:
        """Everything that can be refused, and everything that takes time and changes nothing."""
        request, subject = self._request, self._subject
        criu_path = criu.find(self._env, self._what)
        probe = Probe([criu_path, "--version"], self._env, self._watch.sigmask)
        self._runc_probe = Probe([request.runc, "--version"], self._env, self._watch.sigmask)
        state = runc.state(request.root, request.id, self._what)
        preflight.running(state, self._what)
        preflight.configuration(state, f"{self._container.directory}/criu.conf", self._what)
        subject.freezer = self._find_freezer(state)
        subject.found_frozen = subject.freezer.frozen()
        subject.init = GpuProcess(state.init, holds_device=False, library=False)
        subject.stack.callback(subject.init.close)
        found = self._find_processes()
        intercept = preflight.libraries(subject, found)
        preflight.traced(found, self._what)
        everyone = freezer.processes(subject.freezer.path)
        preflight.space(request, everyone, self._what)
        self._criu_version = criu.check_version(probe.output(Deadline.after(QUERY)), criu_path, self._what)
        self._listed = processes.listed(subject.freezer.path, state.init, [p.pid for p in found])
        preflight.alone(self._listed, subject.freezer.path, self._what)
        preflight.stopped(subject, self._listed)
        self._note(state.init)
        if found:
            libcuda = request.settings.libcuda or request.state["driver"]["libcuda"]["path"]
            subject.calls = Cudactl(libcuda, self._watch)
            subject.stack.callback(subject.calls.close)
            subject.add(found)
            subject.calls.ready(Deadline.after(READY))
            if intercept:
                self._prepare_handover(found, libcuda)

    def _find_processes(self) -> list[GpuProcess]:
        subject = self._subject
        if self._request.state["engine"] != "intercept":
            return processes.gpu_processes(subject.freezer.path, subject.devices)
        from diapause.runtime.engine.libraries import has_own

        return moved.settled(subject, has_own)

    def _prepare_handover(self, found: Sequence[GpuProcess], libcuda: str) -> None:
        from diapause.runtime.engine.handover import Handover

        subject = self._subject
        handover = Handover(subject, self._request, self._container.key, libcuda)
        if handover.accepts(found):
            subject.stack.callback(handover.close)
            self._handover = handover

    def _find_freezer(self, state: runc.State) -> freezer.Freezer:
        try:
            return freezer.find(state.cgroup_paths, state.init)
        except OSError as e:
            why = f"its cgroup cannot be used: {e.filename}: {e.strerror}"
            todo = "the container has to run, with a cgroup that has a freezer"
            raise FailedPrecondition("no-freezer", self._what, why, todo) from None

    def _note(self, init: int) -> None:
        """What whoever recovers has to know."""
        request, subject = self._request, self._subject
        driver = request.state.get("driver") or {}
        self._journal.note(
            operation="checkpoint",
            cgroup=subject.freezer.path,
            frozen=subject.found_frozen,
            init=[init, subject.init.start if subject.init else 0],
            libcuda=request.settings.libcuda or driver.get("libcuda", {}).get("path", ""),
            image=request.image_path,
            store_dir=request.settings.store_dir,
            store_limit=request.settings.store_limit,
            restore_timeout=request.settings.restore_timeout,
            stopped=[process.pid for process in self._listed if process.stopped],
            gpu=[],
        )

    def _save(self) -> tuple[Plan, Dump]:
        """The way by the libraries if there is one, else the driver's."""
        if self._handover is not None:
            from diapause.runtime.engine.exchange import Unsuited
            from diapause.runtime.engine.handover import is_refused

            try:
                return self._execute(self._handover.steps(self._sync), clear=False)
            except Unsuited as unsuited:
                if is_refused(self._subject, unsuited):
                    for note in getattr(unsuited, "__notes__", ()):
                        unsuited.error.add_note(note)
                    raise unsuited.error from None
                report.warning(self._request, f"{self._what}: by the driver alone: {unsuited.error}")
            self._handover = None
            self._note(self._subject.init.pid if self._subject.init else 0)
            self._subject.note_processes()
        subject = self._subject
        steps: list[Step] = []
        if subject.gpu:
            moved.refuse_driver(self._container.key, self._what)
            steps += [Thaw(subject), Lock(subject), Hold(subject), Evacuate(subject), Seal(subject)]
            steps.append(Space(subject, self._request))
        return self._execute(steps, clear=True)

    @property
    def _sync(self) -> bool:
        sync = self._request.settings.fsync
        return sync == "always" or (sync == "auto" and not layout.is_temporary(self._request.image_path))

    def _execute(self, steps: list[Step], *, clear: bool) -> tuple[Plan, Dump]:
        dump = Dump(
            self._subject,
            self._request,
            self._container,
            self._env,
            self._manifest,
            meanwhile=self._look_up,
            sync=self._sync,
            clear=clear,
        )
        # runc overwrites a part of an older snapshot, which has to outlive a refusal of the driver.
        early = steps and not snapshot.committed(self._request.image_path)
        first: list[Step] = [Launch(dump)] if early else []
        plan = Plan(
            [*first, *steps, dump], journal=self._journal, watch=self._watch, phases=self._subject.phases
        )
        plan.run()
        return plan, dump

    def _go_on(self, plan: Plan, dump: Dump) -> None:
        """--leave-running: everything but the dump is undone."""
        dump.keep = True
        if self._handover is not None:
            self._handover.keep()
        self._journal.note(keep=True)
        if failures := plan.unwind():
            from diapause.runtime.engine import kept

            log = logs.keep(self._request.id, [f"{self._container.directory}/journal"])
            why = f"the snapshot is complete, but the container did not come back: {failures[0]}"
            todo = kept.keep(self._request.image_path, self._request.settings, self._request.id)
            self._journal.note(kept=todo)
            error = Internal("resume-failed", self._what, why, todo, log=log)
            for failure in failures[1:]:
                error.add_note(failure)
            raise error

    def _manifest(self, followed: Mapping[str, tuple[int, int, str]]) -> Manifest:
        request, subject = self._request, self._subject
        state = request.state
        gpu = bool(subject.gpu)
        gpu_data = self._handover.finish() if self._handover is not None else None
        evacuated = "intercept" if self._handover is not None else "driver" if gpu else "none"
        libcuda = (state.get("driver") or {}).get("libcuda") or {}
        driver = {
            "version": (state.get("driver") or {}).get("version", ""),
            "digest": libcuda.get("digest", ""),
            "size": libcuda.get("size", 0),
        }
        flags = [name for name in manifest.FLAGS if getattr(request, name.replace("-", "_"))]
        return manifest.Manifest(
            {
                "magic": manifest.MAGIC,
                "version": manifest.VERSION,
                "features": {"required": [manifest.GPU_DATA] if gpu_data else [], "optional": []},
                "id": request.id,
                "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "engine": state["engine"],
                "evacuated": evacuated,
                "software": bool(state.get("software")),
                "spec_digest": self._spec_digest,
                "driver": driver if gpu else None,
                "library": {"digest": state["library"]["digest"]} if state.get("library") else None,
                "targets": list(state.get("targets") or []),
                "tools": self._tools,
                "processes": manifest.process_entries(self._processes()),
                "flags": flags,
                "phases": [],
                **({"gpu_data": gpu_data} if gpu_data else {}),
                "files": manifest.file_entries(snapshot.parts(request.image_path, followed)),
            }
        )

    def _processes(self) -> list[Process]:
        """As listed before the dump, with those that turned out to use the GPU."""
        subject = self._subject
        if not subject.gpu or subject.init is None:
            return list(self._listed)
        stopped = {process.pid for process in self._listed if process.stopped}
        found = processes.listed(subject.freezer.path, subject.init.pid, subject.pids)
        for process in found:
            process.stopped = process.pid in stopped
        return found

    def _look_up(self) -> None:
        """What the manifest says of this host, found out while CRIU works."""
        try:
            with open(f"{self._request.state['bundle']}/config.json", "rb") as file:
                self._spec_digest = f"sha256:{sha256.hexdigest(file.read())}"
        except OSError:
            pass
        words = self._runc_probe.output(Deadline.after(QUERY)).split("\n")[0].split()
        self._tools = {
            "diapause": __version__,
            "runc": " ".join(words[:3]),
            "criu": self._criu_version,
            "kernel": os.uname().release,
        }
