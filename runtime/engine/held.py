"""Getting hold of the GPU processes' threads, and letting go of them."""

from __future__ import annotations

from diapause.runtime.engine import failures
from diapause.runtime.engine import subject as limits
from diapause.runtime.errors import Unavailable
from diapause.runtime.linux import freezer, proc
from diapause.runtime.linux.deadline import Deadline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from diapause.runtime.engine.subject import Subject


_STILL = 0.5  # seconds for all threads to trap; a parent in vfork waits for a child that is held too
_DRIVERS = "cuda"  # how the driver's threads are called: cuda00001400006, cuda-EvtHandlr


def thaw_still(subject: Subject) -> None:
    """Thaw a container without letting its programs run: only the driver's threads do.

    Clients save the files of a frozen container before its memory. What a program wrote between the
    thaw and the dump would be missing in the restored files, though its memory knows of it.
    """
    hold = subject.hold
    for pid in freezer.processes(subject.freezer.path):
        if proc.group_stopped(pid):
            continue  # still by itself
        try:
            hold.seize([pid], Deadline.after(_STILL))
        except PermissionError:
            if pid in subject.pids:
                raise
    subject.thaw()
    try:
        hold.settle(Deadline.after(_STILL))
    except TimeoutError:
        hold.release_still()
        hold.settle(Deadline.after(limits.FREEZE))
        hold.release()
        return
    hold.let_run(_drivers_threads(subject.pids))


def _drivers_threads(pids: Iterable[int]) -> list[int]:
    found = []
    for pid in pids:
        for tid in proc.threads(pid):
            try:
                if proc.comm(tid).startswith(_DRIVERS):
                    found.append(tid)
            except OSError:
                continue
    return found


def take(subject: Subject) -> None:
    """Hold every thread of the running, locked GPU processes.

    A thread that is not held yet may start another one; a held one cannot, so this comes to an end.
    """
    deadline = Deadline.after(limits.FREEZE)
    while subject.hold.seize(subject.pids, deadline):
        subject.hold.settle(deadline)
        if deadline.expired:
            raise TimeoutError(110, "threads keep appearing", subject.what)
    subject.stopped |= subject.hold.stopped


def leave_driver(subject: Subject) -> None:
    """See that no held thread is in the middle of a driver call. Raises Unavailable when one stays there."""
    from diapause.runtime.engine.inside import PATIENCE, Inside

    start = subject.phases.since_start()
    drivers = set(_drivers_threads(subject.pids))
    inside = Inside(subject.hold, [thread for thread in subject.hold.threads if thread[1] not in drivers])
    caught = len(inside.threads)
    moving = inside.leave(Deadline.after(PATIENCE))
    if caught:
        subject.phases.add("leave-driver", subject.phases.since_start() - start)
        text = f"let {caught} threads out of the driver, {len(inside.threads)} of them wait at its lock"
        subject.phases.tell("leave-driver", text=text)
    if moving:
        why = f"thread {moving[0][1]} of {failures.label(moving[0][0])} does not come out of the driver"
        raise Unavailable("thread-in-driver", subject.what, why, "repeat it at another moment")


def drive(subject: Subject) -> None:
    """Let the driver's threads run; the others stay, even if this process dies."""
    subject.hold.let_run(process.tid for process in subject.gpu)
    subject.hold.arm()


def wake_stopped(subject: Subject) -> None:
    """Of processes that a signal has stopped, let the driver's threads run: it cannot work otherwise."""
    held = set(subject.hold.tids)
    asleep = {pid for pid in subject.pids if pid not in held and proc.group_stopped(pid)}
    if not asleep:
        return
    find_driver_threads(subject)
    subject.stopped |= asleep
    subject.hold.seize(asleep, Deadline.after(limits.FREEZE))
    subject.hold.settle(Deadline.after(limits.FREEZE))
    subject.hold.let_run(process.tid for process in subject.gpu if process.pid in asleep)


def quiet(subject: Subject) -> None:
    """Every thread stands still and owes nothing."""
    subject.hold.halt(Deadline.after(limits.FREEZE))
    subject.hold.disarm(Deadline.after(limits.FREEZE))


def let_go(subject: Subject, *, frozen: bool) -> None:
    """Release the threads, into the freezer or to their work."""
    quiet(subject)
    if frozen:
        subject.freeze()
    subject.hold.release()
    if not frozen:
        subject.thaw()


def abandon(subject: Subject) -> None:
    """Let go of the threads of a container that is about to be killed.

    Those that run have to stop for that. A traced thread that dies stays until its tracer looks after it,
    and its process with it: runc waits ten seconds for the end of that, and gives up.
    """
    try:
        subject.hold.halt(Deadline.after(limits.FREEZE))
    except TimeoutError:
        pass  # it hangs in the driver
    subject.hold.release()


def retake(subject: Subject) -> None:
    """Whatever happened since: hold all threads, and let the driver's run.

    Evacuated threads must not run in between, so they are seized in the freezer and trap on their way
    out of it; those of a stopped process are seized outside, where they are no less still.
    """
    if not subject.hold.tids:
        deadline = Deadline.after(limits.TRACERS)
        subject.forget_dead()
        subject.stopped |= {pid for pid in subject.pids if proc.group_stopped(pid)}
        subject.freeze()
        subject.hold.seize([pid for pid in subject.pids if pid not in subject.stopped], deadline)
        subject.thaw()
        subject.hold.seize(subject.pids, deadline)
        subject.hold.settle(Deadline.after(limits.FREEZE))
    drive(subject)


def find_driver_threads(subject: Subject) -> None:
    """Ask the driver for the thread that it works with in each process."""
    for pid, answer in subject.ask("restore-tid").items():
        if answer.result == 0:
            for process in subject.gpu:
                if process.pid == pid:
                    process.tid = _on_this_host(pid, answer.value)
    subject.note_processes()


def _on_this_host(pid: int, tid: int) -> int:
    """The thread's number here; a driver that reads it in the container tells the inner one."""
    tids = proc.threads(pid)
    if tid in tids:
        return tid
    for candidate in tids:
        path = f"/proc/{pid}/task/{candidate}/status"
        try:
            if proc.status_field(path, "NSpid").split()[-1:] == [str(tid)]:
                return candidate
        except OSError:
            continue
    return 0
