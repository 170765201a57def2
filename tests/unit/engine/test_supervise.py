"""The engine's child: what it returns and raises arrives, and it notices what happens to its caller."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from diapause.runtime.engine.supervise import EngineError, supervise
from diapause.runtime.engine.watch import Watch
from diapause.runtime.errors import FailedPrecondition, Internal
from diapause.runtime.linux.deadline import Deadline

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


def test_a_status_arrives() -> None:
    assert supervise("test c1", lambda _: 7) == 7


def test_the_work_is_done_in_a_child() -> None:
    assert supervise("test c1", lambda _: int(os.getpid() != PARENT)) == 1


PARENT = os.getpid()


def test_an_error_arrives_with_everything_it_carries() -> None:
    def fails(_: Watch) -> int:
        error = FailedPrecondition("some-code", "test c1", "why", "todo", log="/log")
        error.add_note("more")
        raise error

    with pytest.raises(FailedPrecondition) as caught:
        supervise("test c1", fails)
    assert str(caught.value) == "test c1: why; todo (log: /log) [some-code]"
    assert caught.value.__notes__ == ["more"]


def test_an_os_error_arrives_with_its_path() -> None:
    def fails(_: Watch) -> int:
        raise OSError(28, "no space left on device", "/data/x")

    with pytest.raises(OSError, match="no space") as caught:
        supervise("test c1", fails)
    assert (caught.value.errno, caught.value.filename) == (28, "/data/x")


def test_an_unforeseen_error_brings_its_trace() -> None:
    def fails(_: Watch) -> int:
        raise ZeroDivisionError("oops")

    with pytest.raises(EngineError, match="oops") as caught:
        supervise("test c1", fails)
    assert "in fails" in caught.value.__notes__[0]


def test_a_killed_child_is_an_error() -> None:
    def dies(_: Watch) -> int:
        os.kill(os.getpid(), signal.SIGKILL)
        return 0

    with pytest.raises(Internal) as caught:
        supervise("test c1", dies)
    assert caught.value.code == "engine-died"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_the_caller_cancels_the_operation(number: int) -> None:
    def waits(watch: Watch) -> int:
        os.kill(os.getppid(), number)
        watch.wait(lambda: False, Deadline.after(10))
        return 0

    read, write = os.pipe()
    pid = os.fork()  # so that no thread of the test process receives it
    if pid == 0:
        try:
            supervise("test c1", waits)
        except Internal as error:
            os.write(write, str(error).encode())
        os._exit(0)
    assert f"interrupted by {signal.Signals(number).name}" in os.read(read, 1000).decode()
    os.waitpid(pid, 0)


def test_the_child_notices_that_its_caller_died(tmp_path: Path) -> None:
    def waits(watch: Watch) -> int:
        os.kill(os.getppid(), signal.SIGKILL)
        try:
            watch.wait(lambda: False, Deadline.after(10))
        except Internal as error:
            (tmp_path / "noticed").write_text(error.why)
            os.write(write, b"x")
        return 0

    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        supervise("test c1", waits)
    os.waitpid(pid, 0)
    assert os.read(read, 1) == b"x"
    assert (tmp_path / "noticed").read_text() == "the process that asked for it died"


def test_while_something_is_undone_nothing_is_cancelled() -> None:
    def undoes(watch: Watch) -> int:
        watch.shielded = True
        os.kill(os.getpid(), signal.SIGTERM)
        watch.until(lambda: bool(watch.cancelled), Deadline.after(10))
        watch.check()
        return 5

    assert supervise("test c1", undoes) == 5
