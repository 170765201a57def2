"""CRIU's dump through runc, with the commit of the snapshot in its last action."""

from __future__ import annotations

import time

from diapause.runtime.engine import criu, logs
from diapause.runtime.engine.dumping import Dumping
from diapause.runtime.errors import DiapauseError, Internal
from diapause.runtime.linux import freezer, proc
from diapause.runtime.store import library, snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from diapause.runtime.container import Container
    from diapause.runtime.engine.request import CheckpointRequest
    from diapause.runtime.engine.subject import Subject
    from diapause.runtime.store.digest import Follower
    from diapause.runtime.store.manifest import Manifest


class Dump:
    """Commits in CRIU's post-dump action: a dump that cannot be committed leaves the container alive.

    undo: the manifest is taken back. CRIU itself has let the container go before runc ends.
    """

    name = "dump"

    def __init__(
        self,
        subject: Subject,
        request: CheckpointRequest,
        container: Container,
        env: Mapping[str, str],
        manifest: Callable[[Mapping[str, tuple[int, int, str]]], Manifest],
        *,
        meanwhile: Callable[[], None],
        sync: bool,
        clear: bool = True,
    ) -> None:
        """`manifest` describes the files that are there, given those hashed already.

        `meanwhile` is called once while CRIU works. `clear` unless somebody writes to the directory already.
        """
        self._subject = subject
        self._request = request
        self._container = container
        self._env = env
        self._manifest = manifest
        self._meanwhile = meanwhile
        self._sync = sync
        self._clear = clear
        self._started = 0.0
        self._dumping: Dumping | None = None  # launched, and waiting for us
        self._follower: Follower | None = None
        self.stderr = ""  # of runc
        self.status = 0
        self.bytes = 0
        self.committed = False
        self.keep = False  # the snapshot stays when the rest is undone

    def describe(self) -> str:
        return f"dump the container to {self._request.image_path}"

    def launch(self) -> None:
        """Start runc and CRIU ahead of time. runc writes into the directory: no snapshot may be in it."""
        self._dumping = self._start()

    def call_off(self) -> None:
        """Undo launch(), unless execute() came to it."""
        if (dumping := self._dumping) is not None:
            self._dumping = None
            dumping.refuse()

    def _start(self) -> Dumping:
        watch = self._subject.watch
        directory = self._container.directory
        return Dumping(self._request, directory, env=self._env, watch=watch, commit=self._commit)

    def execute(self) -> None:
        from diapause.runtime.store.digest import Follower

        request, watch = self._request, self._subject.watch
        if self._clear:
            snapshot.clear(request.image_path)
        dumping, self._dumping = self._dumping or self._start(), None
        try:
            self._follower = Follower(request.image_path, sync=self._sync)
            self._started = time.monotonic()
            dumping.go()
            self._meanwhile()
            dumping.wait(self._hangs)  # a cancellation takes effect at the commit
            if dumping.status is None:
                watch.check()
            self.status = dumping.status or 0
        finally:
            if self._follower is not None:
                self._follower.close()
            dumping.close()
            self.stderr = dumping.stderr
        self.committed = dumping.server.done
        if dumping.server.error is not None:
            raise dumping.server.error
        if self.status != 0 and not (self.committed and self._gone()):
            raise self._failed()
        if not self.committed:
            why = "criu ended without asking for the commit, so the snapshot has no manifest"
            raise Internal("commit-missed", self._subject.what, why, "check org.criu.config of the container")

    def _hangs(self) -> bool:
        """Whether nobody waits any more for a dump that has no hold of any process."""
        subject = self._subject
        if not subject.watch.cancelled or self.committed:
            return False
        return not any(proc.traced(pid) for pid in freezer.processes(subject.freezer.path))

    def _commit(self) -> None:
        now = time.monotonic()
        phases = self._subject.phases
        phases.add("criu-dump", now - self._started)
        self._subject.watch.check()
        followed = self._follower.finish() if self._follower else {}
        library.put(self._request.image_path, (self._request.state.get("library") or {}).get("path", ""))
        document = self._manifest(followed)
        self.bytes = document.size
        phases.tell("criu-dump", text="dump the memory with criu", size=document.size)
        phases.add("digest", time.monotonic() - now)
        document.raw["phases"] = phases.entries()
        self._subject.watch.check()
        now = time.monotonic()
        snapshot.commit(self._request.image_path, document, sync=self._sync)
        phases.add("commit", time.monotonic() - now)

    def _gone(self) -> bool:
        """Whether the container's first process has ended: then the snapshot is all there is."""
        init = self._subject.init
        return init is None or not init.alive

    def _failed(self) -> DiapauseError:
        log = f"{self._request.work_path or self._request.image_path}/dump.log"
        error = criu.failed(self._subject.what, log, logs.keep(self._request.id, [log]), self.stderr)
        if self.stderr:
            error.add_note(self.stderr.rstrip("\n"))
        return error

    def undo(self) -> None:
        if not self.keep:
            snapshot.revoke(self._request.image_path)
