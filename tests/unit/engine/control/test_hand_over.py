import os
from collections.abc import Callable

import pytest

from diapause.runtime import errors
from diapause.runtime.engine.control import Channel, MemoryFlag, connect, payload
from diapause.runtime.linux.deadline import Deadline
from tests.unit.engine.control.test_channel import Peer, peer, play, soon

__all__ = ["peer"]

Request = Callable[[Channel], object]


def asked(peer: Peer, request: Request) -> object:
    with connect(peer.pid, peer.pidfd, soon()) as channel:
        return request(channel)


def refused(peer: Peer, request: Request, code: str) -> errors.DiapauseError:
    with pytest.raises(errors.DiapauseError) as error:
        asked(peer, request)
    assert error.value.code == code
    return error.value


@play("good")
def test_the_list_goes_on_until_an_answer_is_empty(peer):
    memory = asked(peer, lambda channel: channel.memory(soon()))

    assert [entry.id for entry in memory] == [1, 2, 3]
    assert memory[0].address == 0x300000000000
    assert (memory[0].size, memory[0].used, memory[0].device) == (2 << 20, 100, 0)
    assert MemoryFlag.SLAB in memory[0].flags
    assert MemoryFlag.FOREIGN not in memory[0].flags


@play("memory-endless", "memory-repeats", "memory-odd", "memory-huge")
def test_a_list_that_makes_no_sense_is_an_error(peer, monkeypatch):
    monkeypatch.setattr(payload, "ALLOCATIONS", 10000)
    refused(peer, lambda channel: channel.memory(Deadline.after(30)), "control-bad-answer")


@play("good")
def test_every_allocation_gets_its_own_file_close_on_exec(peer):
    fds = asked(peer, lambda channel: channel.export(range(1, 41), soon()))

    assert sorted(fds) == list(range(1, 41))
    assert len(set(fds.values())) == 40
    for fd in fds.values():
        assert not os.get_inheritable(fd)
        os.close(fd)


@play("export-few", "export-many", "export-others")
def test_other_files_than_asked_for_are_closed(peer):
    refused(peer, lambda channel: channel.export([1, 2, 3], soon()), "control-bad-answer")


@play("status-fds")
def test_files_with_a_refusal_are_closed(peer):
    refused(peer, lambda channel: channel.export([1], soon()), "control-bad-answer")


@play("good")
def test_no_allocation_is_named_twice(peer):
    with pytest.raises(ValueError, match="twice"):
        asked(peer, lambda channel: channel.export([1, 2, 1], soon()))


@play("good")
def test_attaching_leaves_the_files_to_their_owner(peer):
    fds = {number: os.open("/dev/null", os.O_RDONLY) for number in range(1, 20)}
    asked(peer, lambda channel: channel.attach(fds, soon()))

    for fd in fds.values():
        os.close(fd)


@play("busy")
def test_a_process_that_is_not_quiet_says_what_there_was_to_wait_for(peer):
    error = refused(peer, lambda channel: channel.quiesce(soon(), timeout=1), "control-busy")

    assert isinstance(error, errors.Unavailable)
    assert "3 threads inside calls, 2 captures" in str(error)


@play("gpu")
def test_a_refusal_of_the_driver_names_the_allocation(peer):
    error = refused(peer, lambda channel: channel.rehome([7], soon()), "control-gpu-failed")

    assert "allocation 7: CUresult 999" in str(error)


@play("gpu-memory")
def test_a_full_gpu_may_have_room_later(peer):
    error = refused(
        peer, lambda channel: channel.attach({}, soon()) or channel.open(soon()), "control-gpu-memory"
    )

    assert isinstance(error, errors.Unavailable)


@play("state")
def test_a_request_in_the_wrong_state_is_refused(peer):
    refused(peer, lambda channel: channel.open(soon()), "control-state")


@play("old")
def test_an_older_library_cannot_hand_memory_over(peer):
    error = refused(peer, lambda channel: channel.stats(soon()), "control-too-old")

    assert "version 1.1" in str(error)


@play("status-short")
def test_a_refusal_without_its_reason_makes_no_sense(peer):
    refused(peer, lambda channel: channel.open(soon()), "control-bad-answer")


@play("good")
def test_answers_that_are_too_short_make_no_sense(peer):
    for request in (
        lambda channel: channel.quiesce(soon(), timeout=1),
        lambda channel: channel.drop(soon()),
        lambda channel: channel.stats(soon()),
    ):
        refused(peer, request, "control-bad-answer")
