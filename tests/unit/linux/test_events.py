"""One wait serves fds, signals and children."""

import os
import signal
import threading

import pytest

from diapause.runtime.linux.deadline import Deadline
from diapause.runtime.linux.events import Events

# Threads of the test process hold no lock that the forked children need.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


def test_a_wait_ends_when_its_condition_holds() -> None:
    read, write = os.pipe()
    seen: list[bytes] = []
    with Events([]) as events:
        events.watch(read, lambda: seen.append(os.read(read, 10)))
        os.write(write, b"x")

        assert events.until(lambda: bool(seen), Deadline.after(5))
    assert seen == [b"x"]


def test_a_wait_ends_at_its_deadline() -> None:
    with Events([]) as events:
        assert not events.until(lambda: False, Deadline.after(0.01))


def test_a_signal_is_read_and_not_delivered() -> None:
    seen: list[int] = []
    with Events([signal.SIGTERM]) as events:
        events.on_signal(signal.SIGTERM, seen.append)
        # To this thread: others of the test process do not block it.
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

        assert events.until(lambda: bool(seen), Deadline.after(5))
    assert seen == [signal.SIGTERM]


def test_the_end_of_a_child_wakes_a_wait() -> None:
    alone = os.fork()  # another thread of the test process could receive the signal
    if alone == 0:
        ended: list[int] = []
        events = Events([])
        events.on_signal(signal.SIGCHLD, ended.append)
        if os.fork() == 0:
            os._exit(0)
        os._exit(0 if events.until(lambda: bool(ended), Deadline.after(5)) else 1)
    assert os.waitpid(alone, 0)[1] == 0


def test_afterwards_the_signal_mask_is_the_old_one() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with Events([signal.SIGTERM]):
        assert signal.SIGTERM in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before


def test_a_callback_may_forget_another_fd() -> None:
    first, second = os.pipe(), os.pipe()
    calls: list[str] = []
    with Events([]) as events:

        def called(name: str, other: int) -> None:
            calls.append(name)
            if events.watches(other):
                events.forget(other)

        events.watch(first[0], lambda: called("first", second[0]))
        events.watch(second[0], lambda: called("second", first[0]))
        os.write(first[1], b"x")
        os.write(second[1], b"x")
        events.serve()
    assert len(calls) == 1
