"""Undoing what a dead engine left behind, from its journal and from what the driver and kernel say.

The journal tells what may have been done; the state of each process tells what was. A checkpoint is taken
back, the container goes on as it was found. A restore is taken back too, unless its last step had begun.
"""

from __future__ import annotations

import os

from diapause.runtime.container import Container
from diapause.runtime.engine import ending, held, journal, lease, runc
from diapause.runtime.engine.driver.calls import Cudactl
from diapause.runtime.engine.processes import GpuProcess
from diapause.runtime.engine.request import Settings
from diapause.runtime.engine.steps import evacuate, go
from diapause.runtime.engine.steps.lock import Lock
from diapause.runtime.engine.subject import READY, TRACERS, Subject
from diapause.runtime.engine.supervise import supervise
from diapause.runtime.errors import DiapauseError, Internal, Unavailable
from diapause.runtime.linux import freezer, proc, signals
from diapause.runtime.linux.deadline import Deadline
from diapause.runtime.store import snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from diapause.runtime.engine.watch import Watch


_UNDONE, _COMPLETED = range(2)


def run(root: str, container_id: str) -> bool:
    """See api.recover; returns whether an operation was completed rather than undone."""
    container = Container(root, container_id)
    if not container.has_journal:
        return False
    return supervise(f"recover {container_id}", lambda watch: _recover(container, watch)) == _COMPLETED


def _recover(container: Container, watch: Watch) -> int:
    with lease.take(container, "recover"):
        completed = replay(container, watch)
        if not runc.exists(container.root, container.id):
            container.forget()
    return _COMPLETED if completed else _UNDONE


def replay(container: Container, watch: Watch) -> bool:
    """Take back what the container's journal tells of, for whoever holds the lease.

    Returns whether the operation had passed the point of no return, and was completed instead.
    """
    record = journal.Journal(f"{container.directory}/journal")
    facts = journal.read(record.path)
    if facts is None:
        return False
    shielded = watch.shielded
    watch.shielded = True  # half a recovery helps nobody
    try:
        if not facts["steps"]:  # it died, or the disk was full, before anything had begun
            completed = False
        elif facts.get("operation") in ("checkpoint", "suspend"):
            completed = _checkpoint(container, facts, watch, record)
        elif facts.get("operation") == "resume":
            completed = _resume(container, watch, record)
        else:
            completed = _restore(container, facts, watch)
        record.remove()
        return completed
    finally:
        record.close()
        watch.shielded = shielded


def _checkpoint(
    container: Container, facts: Mapping[str, Any], watch: Watch, record: journal.Journal
) -> bool:
    try:
        return _take_back(container, facts, watch, record)
    except (DiapauseError, OSError) as error:
        if not facts.get("keep"):
            raise
        from diapause.runtime.engine import kept

        settings = Settings(store_dir=facts.get("store_dir", ""), store_limit=facts.get("store_limit", 0))
        todo = facts.get("kept") or kept.keep(facts["image"], settings, container.id)
        record.add(kept=todo)  # every command that follows comes here
        why = f"the snapshot is complete, but the container did not come back: {error}"
        raise Internal("resume-failed", watch.what, why, todo) from error


def _take_back(container: Container, facts: Mapping[str, Any], watch: Watch, record: journal.Journal) -> bool:
    pid, start = facts["init"]
    # A CRIU that heard of the commit may be about to end the container: until it lets go, nothing is known.
    deadline = Deadline.after(TRACERS)
    watch.until(lambda: not (proc.is_alive(pid, start) and proc.traced(pid)), deadline, tick=0.005)
    if "park" in facts["steps"] and _is_parked(container):
        return True
    if not proc.is_alive(pid, start):
        if "gpus" in facts:
            from diapause.runtime.engine import reclaim

            reclaim.forget(facts, container.key)
        # The dump was committed and ended the container, or something else did.
        return "dump" in facts["steps"] and snapshot.committed(facts["image"])
    if "dump" in facts["steps"] and not facts.get("keep"):
        try:
            snapshot.revoke(facts["image"])
        except OSError:
            pass  # a disk that went bad must not keep the container from coming back
    state = container.load_state() or {}
    settings = Settings(restore_timeout=facts["restore_timeout"])
    subject = Subject(watch=watch, settings=settings, state=state, journal=record)
    with subject.stack:
        subject.freezer = freezer.reopen(facts["cgroup"])
        subject.found_frozen = facts["frozen"]
        if "gated" in facts and "gate" in facts["steps"]:
            from diapause.runtime.engine import reclaim

            reclaim.checkpoint(subject, facts, container.key)
            if not facts.get("keep"):
                reclaim.discard(facts)
            return bool(facts.get("keep"))
        living = [(pid, tid) for pid, start, tid in facts["gpu"] if proc.is_alive(pid, start)]
        if "lock" in facts["steps"] and living:
            _bring_back(subject, living, facts)
        elif "thaw" in facts["steps"]:
            held.let_go(subject, frozen=subject.found_frozen)
    return bool(facts.get("keep"))


def _is_parked(container: Container) -> bool:
    """Whether a suspension came to its end; what the controllers still hold is freed then."""
    from diapause.runtime.engine import reclaim, suspended

    if (facts := suspended.read(container)) is None:
        return False
    reclaim.forget(facts, container.key)
    return True


def _bring_back(subject: Subject, living: list[tuple[int, int]], facts: Mapping[str, Any]) -> None:
    for pid, tid in living:
        process = GpuProcess(pid, holds_device=True, library=False)
        process.tid = tid
        subject.add([process])
    subject.calls = Cudactl(facts["libcuda"], subject.watch)
    subject.stack.callback(subject.calls.close)
    subject.calls.ready(Deadline.after(READY))
    if "hold" in facts["steps"]:
        held.retake(subject)
        evacuate.reload(subject)
    else:
        subject.thaw()  # the driver may still be waiting for their work
    Lock(subject).undo()
    held.let_go(subject, frozen=subject.found_frozen)
    _continue(subject, facts["stopped"])


def _continue(subject: Subject, stopped: list[int]) -> None:
    """The dead engine's hold turned into a stop; whoever was stopped before stays so."""
    for pid in freezer.processes(subject.freezer.path):
        try:
            if proc.namespaced_pids(pid)[-1] not in stopped:
                os.kill(pid, signals.SIGCONT)
        except (OSError, IndexError):
            continue


def _resume(container: Container, watch: Watch, record: journal.Journal) -> bool:
    from diapause.runtime.engine import resume, suspended

    if (facts := suspended.read(container)) is not None:
        resume.complete(container, facts, watch, record)
    return True


def _restore(container: Container, facts: Mapping[str, Any], watch: Watch) -> bool:
    if "go" in facts["steps"] and runc.exists(container.root, container.id):
        state = runc.state(container.root, container.id, watch.what)
        path = state.cgroup_paths.get("freezer") or state.cgroup_paths[""]
        go.proceed(path, state.init, facts["stopped"])
        return True
    if "gpus" in facts:
        from diapause.runtime.engine import reclaim

        reclaim.forget(facts, container.key)
    ending.end(
        container.root,
        container.id,
        watch.what,
        runtime=facts["runc"],
        args=facts["global_args"],
        env=os.environ,
        facts=facts,
    )
    return False


def after_death(root: str, container_id: str, error: Internal) -> int:
    """The engine was killed while its caller lives: undo or complete its work at once.

    Returns the exit status of a completed operation, raises `error` for one that was undone.
    """
    try:
        completed = run(root, container_id)
    except (Unavailable, Internal, OSError) as failure:
        error.add_note(f"recovery failed: {failure}")
        raise error from None
    if completed:
        return 0
    why = f"{error.why}; what it did has been undone"
    raise Internal(error.code, error.what, why, "repeat it") from None
