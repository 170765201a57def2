"""Threads held by ptrace: not one instruction of their program runs between seize and release."""

from __future__ import annotations

import os

from diapause.runtime.linux import libc, proc, ptrace, signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from diapause.runtime.linux.deadline import Deadline
    from diapause.runtime.linux.events import Events

_FINAL = "ZX"  # states of a thread that has ended; a leader may stay so while its process lives


class _Thread:
    __slots__ = ("armed", "mask", "owed", "pid", "running", "settled", "stopped", "tid")

    def __init__(self, pid: int, tid: int) -> None:
        self.pid = pid
        self.tid = tid
        self.mask: int | None = None  # the program's own, while all signals are blocked
        self.settled = False
        self.stopped = False  # by a signal, together with its process
        self.running = False
        self.armed = False
        self.owed = 0  # a stop signal that somebody sent meanwhile


class Hold:
    """Owns the threads of some processes from seize() to release().

    The kernel detaches tracees whose tracer dies, and they run on. While `arm`ed each of them has a
    SIGSTOP pending, which takes effect before its program runs: they end up stopped instead.
    Used by one thread alone, because that thread is the tracer.
    """

    def __init__(self, events: Events) -> None:
        self._events = events
        self._threads: dict[int, _Thread] = {}
        events.on_signal(signals.SIGCHLD, self._serve)

    def seize(self, pids: Iterable[int], deadline: Deadline) -> int:
        """Take every thread that is not held yet, and make it trap; returns how many there were.

        Threads may run, be stopped, or be frozen, but not stopped *and* frozen: version 1 of the
        freezer keeps those from trapping, and the kernel would wait for them (see `stopped`).
        Raises PermissionError when another tracer keeps a thread until the deadline.
        """
        seized = 0
        for pid in pids:
            for tid in proc.threads(pid):
                if tid not in self._threads:
                    seized += self._seize(pid, tid, deadline)
        return seized

    def _seize(self, pid: int, tid: int, deadline: Deadline) -> bool:
        while True:
            try:
                ptrace.seize(tid)
            except ProcessLookupError:
                return False
            except PermissionError:
                if _ended(pid, tid):
                    return False
                # A tracer that is on its way out (CRIU after a failed dump) lets go soon.
                if not self._events.until(lambda: not _traced(pid, tid), deadline, tick=0.001):
                    raise
                continue
            break
        self._threads[tid] = _Thread(pid, tid)
        self._try(tid, ptrace.interrupt, tid)
        return True

    def settle(self, deadline: Deadline) -> None:
        """Wait until every thread seized since stands still. Raises TimeoutError."""
        self._collect({tid for tid, thread in self._threads.items() if not thread.settled}, deadline)

    @property
    def stopped(self) -> set[int]:
        """The held processes that a signal had stopped before."""
        return {thread.pid for thread in self._threads.values() if thread.stopped}

    def _collect(self, waiting: set[int], deadline: Deadline, *, for_signal: int = 0) -> None:
        """Take one stop of each thread, of the given delivery if `for_signal` is set."""

        def arrived() -> bool:
            for tid in list(waiting):
                stop = self._stop(tid)
                if stop is None and tid in self._threads:
                    continue
                if stop is not None and for_signal and (stop.event or stop.signal != for_signal):
                    self._try(tid, ptrace.resume, tid)
                    continue
                if stop is not None:
                    self._threads[tid].settled = True
                    self._threads[tid].stopped |= bool(stop.event and stop.signal != signals.SIGTRAP)
                waiting.discard(tid)
            return not waiting

        # SIGCHLD wakes the wait; a thread that does not block it could take it away.
        if not self._events.until(arrived, deadline, tick=0.02):
            raise TimeoutError(110, f"threads {sorted(waiting)} did not stop in time")

    def _stop(self, tid: int) -> ptrace.Stop | None:
        try:
            return ptrace.stopped(tid)
        except ChildProcessError:
            self._threads.pop(tid, None)
            return None

    def arm(self) -> None:
        """From now on the death of this process leaves the held threads stopped."""
        for tid, thread in list(self._threads.items()):
            if not thread.running and not thread.stopped:
                thread.armed = self._try(tid, libc.tgkill, thread.pid, tid, signals.SIGSTOP)

    def disarm(self, deadline: Deadline) -> None:
        """Take the pending SIGSTOP back, without a SIGCONT that the program could see.

        The thread is let go as far as the delivery of the signal, all others blocked, and stops
        there again, still inside the kernel.
        """
        armed = {tid: thread for tid, thread in self._threads.items() if thread.armed}
        for tid, thread in armed.items():
            self._block(thread)
            self._try(tid, ptrace.resume, tid)
        self._collect(set(armed), deadline, for_signal=signals.SIGSTOP)
        for thread in armed.values():
            thread.armed = False
            self._unblock(thread)

    def let_run(self, tids: Iterable[int]) -> None:
        """Let some threads run, with every signal blocked: no handler of the program runs on them."""
        for tid in tids:
            thread = self._threads.get(tid)
            if thread is not None and not thread.running:
                self._block(thread)
                thread.running = self._try(tid, ptrace.resume, tid)

    def halt(self, deadline: Deadline) -> None:
        """Stop the threads that let_run() let run, and give them their signal mask back."""
        running = {tid: thread for tid, thread in self._threads.items() if thread.running}
        for tid, thread in running.items():
            thread.running = False
            self._try(tid, ptrace.interrupt, tid)
        self._collect(set(running), deadline)
        for thread in running.values():
            self._unblock(thread)

    def _serve(self, _: int) -> None:
        """Keep running threads running: a stop signal or a group stop would stall the driver."""
        for tid, thread in list(self._threads.items()):
            if not thread.running:
                continue
            while (stop := self._stop(tid)) is not None:
                pass_on = 0
                if not stop.event and stop.signal in (signals.SIGSTOP, signals.SIGTSTP):
                    thread.owed = stop.signal
                elif not stop.event:
                    pass_on = stop.signal  # a fault of its own: nothing can be saved
                self._try(tid, ptrace.resume, tid, signal=pass_on)

    def _block(self, thread: _Thread) -> None:
        if thread.mask is None:
            try:
                thread.mask = ptrace.signal_mask(thread.tid)
                ptrace.set_signal_mask(thread.tid, ptrace.ALL_SIGNALS)
            except ProcessLookupError:
                pass  # it is being killed

    def _unblock(self, thread: _Thread) -> None:
        if thread.mask is not None:
            self._try(thread.tid, ptrace.set_signal_mask, thread.tid, thread.mask)
            thread.mask = None

    def _try(self, tid: int, call: Callable[..., None], *arguments: int, **named: int) -> bool:
        """Whether the call was made; a thread that is being killed answers nothing any more."""
        try:
            call(*arguments, **named)
        except ProcessLookupError:
            return False
        return tid in self._threads

    def release(self) -> None:
        """Detach from every thread; each goes on where it was, or freezes when its cgroup is frozen."""
        for tid in list(self._threads):
            self._detach(tid)
        self._threads.clear()

    def release_still(self) -> None:
        """Detach from the threads that stand still; those on their way there, or let run, stay ours."""
        for tid in [tid for tid, thread in self._threads.items() if thread.settled and not thread.running]:
            self._detach(tid)
            self._threads.pop(tid, None)

    def _detach(self, tid: int) -> None:
        if (thread := self._threads.get(tid)) is not None and thread.owed:
            self._try(tid, libc.tgkill, thread.pid, tid, thread.owed)
        self._try(tid, ptrace.detach, tid)

    @property
    def tids(self) -> list[int]:
        return list(self._threads)

    @property
    def threads(self) -> list[tuple[int, int]]:
        """(pid, tid) of every held thread."""
        return [(thread.pid, tid) for tid, thread in self._threads.items()]

    def close(self) -> None:
        self.release()
        self._events.off_signal(signals.SIGCHLD, self._serve)


def _ended(pid: int, tid: int) -> bool:
    try:
        return proc.status_field(f"/proc/{pid}/task/{tid}/status", "State")[:1] in _FINAL
    except OSError:
        return True


def _traced(pid: int, tid: int) -> bool:
    try:
        return proc.tracer(pid, tid) not in (0, os.getpid())
    except OSError:
        return False
