"""CRIU's restore through runc; every process of the container comes back stopped."""

from __future__ import annotations

import os

from diapause.runtime.engine import criu, ending, held, logs, runc
from diapause.runtime.engine.processes import GpuProcess
from diapause.runtime.errors import DiapauseError, Internal
from diapause.runtime.linux import freezer, proc
from diapause.runtime.linux.deadline import Deadline
from diapause.runtime.linux.spawn import Child, spawn
from diapause.runtime.store.background import Background

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from diapause.runtime.container import Container
    from diapause.runtime.engine.request import RestoreRequest
    from diapause.runtime.engine.subject import Subject
    from diapause.runtime.store.manifest import Manifest

_TICK = 0.001  # seconds between two looks for runc's pid file, which nothing announces


class Load:
    """`runc restore`, with the container's stdio, while a thread verifies what CRIU reads.

    Without --detach runc goes on as the container's parent; it writes its pid file at the moment when
    CRIU is done. undo: the container is killed and forgotten.
    """

    name = "load"

    def __init__(
        self,
        subject: Subject,
        request: RestoreRequest,
        container: Container,
        *,
        env: Mapping[str, str],
        facts: Mapping[str, Any],
        document: Manifest,
        verify: Callable[[], None],
    ) -> None:
        """`facts` are halfway's, from before."""
        self._subject = subject
        self._request = request
        self._container = container
        self._env = env
        self._facts = facts
        self._document = document
        self._verify = verify
        self.bytes = document.size
        self.child: Child | None = None  # runc
        self._logged = 0  # bytes in the file of --log before it started
        self.verification: Background | None = None

    def describe(self) -> str:
        return f"restore the container from {self._request.image_path}, stopped"

    def execute(self) -> None:
        request, watch = self._request, self._subject.watch
        criu.write_config(request, self._container.directory, "restore", env=self._env)
        extra = [f"--{flag}" for flag in self._document.flags if not getattr(request, flag.replace("-", "_"))]
        pid_file = request.pid_file or f"{self._container.directory}/restored.pid"
        if not request.detach and not request.pid_file:
            extra += ["--pid-file", pid_file]
        before = _identity(pid_file)
        self._logged = _size(request.log)
        self.child = child = spawn(
            runc.argv(request, "restore", extra),
            env=self._env, stdin=0, stdout=1, stderr=2, keep_fds=True,
            sigmask=watch.sigmask, oom_score_adj=watch.oom_score_adj,
        )  # fmt: skip
        self._subject.journal.note(child=[child.pid, proc.start_time(child.pid)])
        self.verification = Background(self._verify)
        watch.watch(child.pidfd, lambda: None)

        def restored() -> bool:
            if child.poll() is not None:
                return True
            return not request.detach and _identity(pid_file) not in (None, before)

        # As with a dump, CRIU is not cut off: a cancellation takes effect afterwards.
        watch.until(restored, Deadline.never(), tick=0 if request.detach else _TICK)
        watch.forget(child.pidfd)
        if child.status is not None and (child.status != 0 or not request.detach):
            raise self._failed()
        self._find()

    def _find(self) -> None:
        """The processes that came back, those with a GPU among them."""
        request, subject = self._request, self._subject
        state = runc.state(request.root, request.id, subject.what)
        subject.freezer = freezer.find(state.cgroup_paths, state.init)
        subject.init = GpuProcess(state.init, holds_device=False, library=False)
        subject.stack.callback(subject.init.close)
        from diapause.runtime.engine.processes import by_inner_pid

        there = by_inner_pid(subject.freezer.path, state.init)
        for process in self._document.processes:
            if not process.gpu:
                continue
            if (pid := there.get(process.pid)) is None:
                why = f"process {process.pid} ({process.comm}) of the snapshot did not come back"
                raise Internal("process-missing", subject.what, why, "take the snapshot anew")
            subject.add([GpuProcess(pid, holds_device=True, library=False)])

    def _failed(self) -> DiapauseError:
        request = self._request
        log = f"{request.work_path or request.image_path}/restore.log"
        status = self.child.status if self.child else None
        # Without --log its reason is on stderr, which is the container's too.
        said = runc.last_error(request.log, self._logged) or f"it ended with status {status}"
        return criu.failed(self._subject.what, log, logs.keep(request.id, [log]), said)

    def undo(self) -> None:
        if self.child is not None and self.verification is not None:
            try:
                self.verification.result()
            except Exception:  # it is the error being handled, or it comes second
                pass
        request = self._request
        held.abandon(self._subject)
        if self.child is not None:
            self.child.close()
        ending.end(
            request.root,
            request.id,
            self._subject.what,
            runtime=request.runc,
            args=request.global_args,
            env=self._env,
            facts=self._facts,
        )


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _identity(path: str) -> tuple[int, int] | None:
    """What changes when a file is written anew, None when there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns
