"""How a controller starts and ends, and what outlives it."""

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from diapause.runtime import errors
from diapause.runtime.gpud import client
from diapause.runtime.linux.deadline import Deadline
from diapause.runtime.store.gpu_index import BLOCK

GPU = "GPU-d1a9a05e-50f7-4000-8000-000000000000"


@pytest.fixture
def place(host: Path) -> Path:
    return host / f"run/gpud/{GPU}"


@pytest.fixture
def holding(controller, program, container, deadline, allocation):
    """A controller that holds an allocation of the container."""
    (fd,) = program.make([1, 2])
    controller.begin(container, deadline)
    controller.take(container, [allocation(1, 2)], {1: fd}, deadline)
    program.release(fd)
    return controller


def until(condition, seconds: float = 20) -> None:
    deadline = Deadline.after(seconds)
    while not condition():
        assert not deadline.expired


def test_it_says_what_it_is(controller, deadline):
    found = controller.hello(deadline)

    assert (found.gpu, found.software, found.total) == (GPU, True, 256 << 20)
    assert found.containers == []
    until(lambda: controller.hello(deadline).pool == 64 << 20)


def test_its_files_are_for_root_alone(controller, place):
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.lstat().st_mode) for path in place.iterdir()} == {0o600}


def test_the_second_one_finds_the_first(connect, deadline):
    assert connect().hello(deadline).pid == connect().hello(deadline).pid


def test_two_that_start_it_at_once_get_the_same(libcuda, connect, deadline, host):
    program = (
        "import sys\nfrom diapause.runtime.gpud import client\n"
        "from diapause.runtime.linux.deadline import Deadline\n"
        "print(client.connect(sys.argv[1], sys.argv[2], Deadline.after(30)).hello(Deadline.after(30)).pid)"
    )
    argv = [sys.executable, "-c", program, GPU, libcuda]
    both = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(3)]

    pids = {process.communicate(timeout=60)[0] for process in both}
    assert pids == {f"{connect().hello(deadline).pid}\n"}


def test_it_ends_when_it_is_idle_and_starts_again(connect, controller, deadline, place):
    first = controller.hello(deadline).pid
    controller.close()

    until(lambda: not (place / "socket").exists())
    assert connect().hello(deadline).pid != first


def test_one_that_is_kept_warm_ends_when_nobody_can_find_it_any_more(
    libcuda, connect, deadline, place, monkeypatch
):
    monkeypatch.setenv("DIAPAUSE_GPU_IDLE_TIMEOUT", "0")
    controller = connect()
    pid = controller.hello(deadline).pid
    controller.close()
    (place / "socket").unlink()

    until(lambda: not Path(f"/proc/{pid}").exists())


def test_it_stays_while_it_holds_something_and_ends_when_the_container_is_gone(
    holding, connect, place, container, deadline, host, monkeypatch
):
    holding.close()
    with pytest.raises(AssertionError):
        until(lambda: not (place / "socket").exists(), 3)

    (host / f"run/c/{container}").rmdir()

    until(lambda: not (place / "socket").exists(), 30)


def test_it_refuses_to_stop_while_it_holds_something(holding, container, deadline, place):
    with pytest.raises(errors.FailedPrecondition, match=rf"{container}.*gpud-in-use"):
        holding.stop(deadline)

    holding.forget(container, deadline)
    holding.stop(deadline)
    until(lambda: not (place / "socket").exists())


def test_what_it_holds_outlives_its_death(
    holding, connect, program, container, directory, deadline, allocation, digest
):
    first = holding.hello(deadline).pid
    os.kill(first, signal.SIGKILL)
    controller = connect()

    assert controller.hello(deadline).pid != first
    assert [(a.id, a.size) for a in controller.held(container, deadline)] == [(1, 2 * BLOCK)]
    given = controller.give(container, 1, [1], deadline)
    assert program.read([given[1]], [2 * BLOCK]) == [digest([1, 2])]
    os.close(given[1])
    controller.begin(container, deadline)
    controller.take(container, [allocation(1, 2)], {}, deadline)
    controller.save(container, directory, deadline)
    assert controller.wait(container, deadline).written == 2 * BLOCK


def test_what_it_let_go_does_not_come_back_after_its_death(holding, connect, container, deadline):
    holding.forget(container, deadline)
    os.kill(holding.hello(deadline).pid, signal.SIGKILL)

    assert connect().hello(deadline).containers == []


def test_a_process_that_ended_while_it_was_dead_is_noticed(holding, connect, container, deadline):
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    pidfd = os.pidfd_open(child.pid)
    holding.watch(container, 1, pidfd, deadline)
    os.close(pidfd)
    os.kill(holding.hello(deadline).pid, signal.SIGKILL)
    child.communicate(b"\n")

    controller = connect()
    until(lambda: controller.held(container, deadline) == [])


def test_a_client_of_one_that_died_is_told(holding, container, deadline):
    os.kill(holding.hello(deadline).pid, signal.SIGKILL)

    with pytest.raises(errors.Unavailable, match="gpud-gone"):
        holding.wait(container, deadline)


def test_a_gpu_that_the_driver_does_not_know_is_a_refusal(libcuda, host):
    other = "GPU-00000000-0000-0000-0000-000000000000"

    with pytest.raises(errors.FailedPrecondition, match=r"the driver does not know it.*\[gpud-no-gpu\]"):
        client.connect(other, libcuda, Deadline.after(30))
    until(lambda: not (host / f"run/gpud/{other}/socket").exists())


def test_a_library_that_is_no_driver_is_a_refusal(libcuda, place):
    with pytest.raises(errors.FailedPrecondition, match="gpud-no-gpu"):
        client.connect(GPU, "/nonexistent/libcuda.so.1", Deadline.after(30))
    until(lambda: not (place / "socket").exists())


def test_a_name_that_is_no_gpu_starts_nothing(libcuda, host):
    with pytest.raises(errors.InvalidArgument, match="gpud-bad-name"):
        client.connect("GPU-../../../etc", libcuda, Deadline.after(5))
    assert not (host / "run/gpud").exists()


def test_the_log_has_a_line_of_json_for_each_event_and_no_contents(
    holding, container, directory, deadline, place
):
    holding.save(container, directory, deadline)
    holding.wait(container, deadline)

    def lines():
        return [json.loads(line) for line in (place / "log").read_text().splitlines()]

    until(lambda: any(line["msg"] == "save" for line in lines()))
    line = next(line for line in lines() if line["msg"] == "save")
    assert line["container"] == container
    assert line["bytes"] == 2 * BLOCK
    assert line["ms"] >= 0
