import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from diapause.runtime import errors
from diapause.runtime.engine.control import Counter, connect, find
from diapause.runtime.linux.deadline import Deadline

FAKE = Path(__file__).parents[3] / "fakes" / "control_peer.py"


class Peer:
    """A process that plays a scenario, and the pidfd by which the test holds it."""

    def __init__(self, scenario: str, *arguments: str, pass_fds: tuple[int, ...] = ()) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-I", str(FAKE), scenario, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=pass_fds,
        )
        self.pid = self.process.pid
        self.pidfd = os.pidfd_open(self.pid)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"ready\n"

    def end(self) -> None:
        self.process.communicate()
        os.close(self.pidfd)


@pytest.fixture
def peer(request: pytest.FixtureRequest) -> Iterator[Peer]:
    peer = Peer(request.param)
    before = len(os.listdir("/proc/self/fd"))
    yield peer
    assert len(os.listdir("/proc/self/fd")) == before, "file descriptors were left open"
    peer.end()


def play(*scenarios: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("peer", scenarios, indirect=True)


def soon() -> Deadline:
    return Deadline.after(10)


@play("good", "hello-longer", "decoys", "stale")
def test_a_library_says_who_it_is(peer):
    with connect(peer.pid, peer.pidfd, soon()) as channel:
        hello = channel.hello(soon())

    assert (hello.pid, hello.software, hello.driver, hello.functions) == (peer.pid, True, 13000, 5)
    assert hello.build_id == bytes(range(20))


@play("good")
def test_counters_come_by_name_and_unknown_ones_are_left_out(peer):
    with connect(peer.pid, peer.pidfd, soon()) as channel:
        counters = channel.counters(soon())

    assert counters == {counter: 20 + counter for counter in Counter}


@play("good")
def test_a_channel_can_be_had_again(peer):
    for _ in range(3):
        with connect(peer.pid, peer.pidfd, soon()) as channel:
            assert channel.hello(soon()).pid == peer.pid


@play("good")
def test_the_page_is_found_by_the_pid_alone(peer):
    page = find(peer.pid)

    assert page is not None
    assert (page.pid, page.major, page.gate) == (peer.pid, 1, 0)


@play("none", "page-magic", "page-short", "page-unsealed", "page-file", "page-of-parent")
def test_a_process_without_a_valid_page_of_its_own_has_none(peer):
    assert find(peer.pid) is None
    with pytest.raises(errors.NotFound) as error:
        connect(peer.pid, peer.pidfd, soon())
    assert error.value.code == "control-page-missing"


def test_a_process_that_is_gone_has_no_page():
    peer = Peer("good")
    peer.process.communicate()

    assert find(peer.pid) is None
    with pytest.raises(errors.NotFound):
        connect(peer.pid, peer.pidfd, soon())
    os.close(peer.pidfd)


@play("page-newer", "major")
def test_a_library_of_a_newer_major_is_refused_with_what_to_do(peer):
    with pytest.raises(errors.FailedPrecondition, match=r"version [79], this tool 1 to 1") as error:
        connect(peer.pid, peer.pidfd, soon())
    assert error.value.code == "control-version"


@play("peer-closed", "peer-file", "peer-udp", "peer-stream", "peer-listening", "hello-pid")
def test_an_end_that_is_not_one_of_the_process_is_an_impostor(peer):
    with pytest.raises(errors.Internal) as error:
        connect(peer.pid, peer.pidfd, soon())
    assert error.value.code == "control-impostor"


@play("peer-negative")
def test_a_library_that_lost_its_end_is_told_apart(peer):
    with pytest.raises(errors.FailedPrecondition) as error:
        connect(peer.pid, peer.pidfd, soon())
    assert error.value.code == "control-closed"


def test_a_socket_to_another_process_is_not_spoken_to():
    other = Peer("good")
    page = find(other.pid)
    assert page is not None
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with mine, theirs:
        peer = Peer("peer-of-another", str(theirs.fileno()), pass_fds=(theirs.fileno(),))
        with pytest.raises(errors.Internal, match=f"connected to process {os.getpid()}"):
            connect(peer.pid, peer.pidfd, soon())
        with pytest.raises(BlockingIOError):
            mine.recv(1, socket.MSG_DONTWAIT)
    peer.end()
    other.end()


@play("magic", "length", "huge", "short", "empty", "hello-short", "fds", "many-fds", "flood", "hangs-up")
def test_an_answer_that_makes_no_sense_is_an_error(peer):
    with pytest.raises(errors.Internal) as error:
        connect(peer.pid, peer.pidfd, soon())
    assert error.value.code == "control-bad-answer"


@play("refuses")
def test_a_refused_request_is_an_error(peer):
    with (
        connect(peer.pid, peer.pidfd, soon()) as channel,
        pytest.raises(errors.Internal, match="for counters: status 3"),
    ):
        channel.counters(soon())


@play("silent")
def test_a_peer_that_never_answers_costs_the_deadline(peer):
    start = time.monotonic()
    with pytest.raises(errors.Unavailable) as error:
        connect(peer.pid, peer.pidfd, Deadline.after(0.2))

    assert error.value.code == "control-no-answer"
    assert 0.2 <= time.monotonic() - start < 5
