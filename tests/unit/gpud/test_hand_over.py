"""What a controller believes of what it is handed: nothing that the driver does not confirm."""

import os
import subprocess
import sys

import pytest

from diapause.runtime import errors
from diapause.runtime.store.gpu_index import BLOCK, Allocation


@pytest.fixture
def began(controller, container, deadline):
    controller.begin(container, deadline)
    return controller


def test_a_size_that_the_memory_does_not_have_is_refused(began, program, container, deadline, allocation):
    fds = program.make([1, 2], [3])

    with pytest.raises(errors.FailedPrecondition, match=r"allocation 2 of process 1: cuMemMap.*gpud-refused"):
        began.take(container, [allocation(1, 2), allocation(2, 2)], {1: fds[0], 2: fds[1]}, deadline)
    assert began.held(container, deadline) == []


def test_a_size_that_no_gpu_memory_has_is_refused(began, program, container, deadline):
    (fd,) = program.make([1])
    odd = Allocation(process=1, device=0, id=1, address=0, size=BLOCK - 4096)

    with pytest.raises(errors.FailedPrecondition, match=r"no multiple of .*gpud-refused"):
        began.take(container, [odd], {1: fd}, deadline)


@pytest.mark.parametrize("what", ["/dev/zero", "/proc/self/mem", "memfd", "pipe"])
def test_file_descriptors_that_are_no_memory_of_a_gpu_are_refused(
    began, container, deadline, allocation, what
):
    if what == "pipe":
        fd, other = os.pipe()
        os.close(other)
    elif what == "memfd":
        fd = os.memfd_create("softgpu-memory")  # its name is not enough: it could shrink
        os.ftruncate(fd, BLOCK)
    else:
        fd = os.open(what, os.O_RDONLY)
    try:
        with pytest.raises(errors.FailedPrecondition, match=r"cuMemImportFromShareableHandle.*gpud-refused"):
            began.take(container, [allocation(1, 1)], {1: fd}, deadline)
    finally:
        os.close(fd)


def test_an_allocation_without_memory_has_to_be_held(began, container, deadline, allocation):
    with pytest.raises(errors.NotFound, match=r"allocation 5 of process 1 is not held \[gpud-not-held\]"):
        began.take(container, [allocation(5, 1)], {}, deadline)


def test_an_allocation_that_is_held_keeps_its_size(began, program, container, deadline, allocation):
    (fd,) = program.make([1, 2])
    began.take(container, [allocation(1, 2)], {1: fd}, deadline)

    with pytest.raises(errors.FailedPrecondition, match=r"2097152 bytes now, 4194304 before"):
        began.take(container, [allocation(1, 1)], {}, deadline)


def test_memory_that_is_handed_over_again_replaces_the_old_one(
    began, program, container, deadline, allocation, digest
):
    old, new = program.make([1], [2, 3])
    began.take(container, [allocation(1, 1)], {1: old}, deadline)
    began.take(container, [allocation(1, 2)], {1: new}, deadline)

    given = began.give(container, 1, [1], deadline)
    assert program.read([given[1]], [2 * BLOCK]) == [digest([2, 3])]
    os.close(given[1])


def test_a_list_can_be_saved_once(began, program, container, directory, deadline, allocation):
    (fd,) = program.make([1])
    began.take(container, [allocation(1, 1)], {1: fd}, deadline)
    began.save(container, directory, deadline)
    began.wait(container, deadline)

    began.save(container, directory, deadline)  # of nothing: the list was of the first
    with pytest.raises(errors.Internal, match="gpud-io"):
        began.wait(container, deadline)


def test_memory_outlives_the_program_that_made_it(
    began, program, container, directory, deadline, allocation, digest
):
    (fd,) = program.make([1, 2, 3])
    began.take(container, [allocation(1, 3)], {1: fd}, deadline)
    program.release(fd)
    program.process.kill()
    program.process.wait()

    began.save(container, directory, deadline)
    assert began.wait(container, deadline).written == 3 * BLOCK


def test_what_a_process_had_is_let_go_when_it_ends(began, program, container, deadline, allocation):
    a, b = program.make([1], [2])
    began.take(container, [allocation(1, 1, process=1)], {1: a}, deadline)
    began.take(container, [allocation(1, 1, process=7)], {1: b}, deadline)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    pidfd = os.pidfd_open(child.pid)
    began.watch(container, 7, pidfd, deadline)
    os.close(pidfd)
    assert len(began.held(container, deadline)) == 2

    child.communicate(b"\n")

    while len(held := began.held(container, deadline)) == 2:
        assert not deadline.expired
    assert [a.process for a in held] == [1]


def test_a_container_that_is_forgotten_holds_nothing(began, program, container, deadline, allocation):
    (fd,) = program.make([1])
    began.take(container, [allocation(1, 1)], {1: fd}, deadline)

    for _ in range(2):
        began.forget(container, deadline)
    assert began.held(container, deadline) == []
    assert began.hello(deadline).containers == []
    with pytest.raises(errors.NotFound, match="gpud-no-job"):
        began.wait(container, deadline)
