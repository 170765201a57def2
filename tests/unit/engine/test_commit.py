"""The commit protocol with CRIU's action script."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from diapause.runtime.engine.commit import CommitServer
from diapause.runtime.engine.watch import Watch
from diapause.runtime.linux.deadline import Deadline


@pytest.fixture
def path() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="dp-") as folder:
        yield f"{folder}/commit.sock"


@pytest.fixture
def watch() -> Iterator[Watch]:
    with Watch("test c1") as watch:
        yield watch


def ask(path: str, watch: Watch, action: bytes = b"post-dump\n") -> bytes:
    """What the action script hears."""
    answer: list[bytes] = []

    def script() -> None:
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(path)
            peer.sendall(action)
            answer.append(peer.recv(2, socket.MSG_WAITALL))

    thread = threading.Thread(target=script)
    thread.start()
    assert watch.until(lambda: bool(answer), Deadline.after(10), tick=0.01)
    thread.join()
    return answer[0]


def test_a_commit_is_made_once_however_often_it_is_asked_for(path: str, watch: Watch) -> None:
    made: list[str] = []
    server = CommitServer(path, watch, lambda: made.append("x"))

    assert ask(path, watch) == b"0\n"
    assert ask(path, watch) == b"0\n"
    server.close()

    assert made == ["x"]
    assert server.done


def test_a_commit_that_fails_makes_criu_fail_every_time(path: str, watch: Watch) -> None:
    def full() -> None:
        raise OSError(28, "no space left on device")

    server = CommitServer(path, watch, full)

    assert ask(path, watch) == b"1\n"
    assert ask(path, watch) == b"1\n"
    server.close()

    assert not server.done
    assert isinstance(server.error, OSError)


@pytest.mark.parametrize("action", [b"pre-dump \n", b"post-dump!"])
def test_any_other_action_gets_no_answer(path: str, watch: Watch, action: bytes) -> None:
    made: list[str] = []
    server = CommitServer(path, watch, lambda: made.append("x"))

    assert ask(path, watch, action) == b""
    server.close()

    assert made == []


@pytest.mark.parametrize("go", [False, True])
def test_a_criu_that_asks_early_waits_for_leave_to_begin(path: str, watch: Watch, go: bool) -> None:
    server = CommitServer(path, watch, lambda: None)
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(path)
        peer.sendall(b"pre-dump\n")
        peer.setblocking(False)
        watch.serve()
        with pytest.raises(BlockingIOError):
            peer.recv(2)
        server.answer(go=go)
        assert peer.recv(3) == (b"0\n" if go else b"1\n")

    assert ask(path, watch, b"pre-dump\n") == (b"0\n" if go else b"1\n")
    server.close()


def test_a_criu_that_asks_after_the_end_finds_nobody(path: str, watch: Watch) -> None:
    server = CommitServer(path, watch, lambda: None)
    server.abandon()
    server.close()
    with socket.socket(socket.AF_UNIX) as peer, pytest.raises(ConnectionRefusedError):
        peer.connect(path)


def test_a_socket_that_a_dead_engine_left_is_replaced(path: str, watch: Watch) -> None:
    left = socket.socket(socket.AF_UNIX)
    left.bind(path)
    left.close()

    server = CommitServer(path, watch, lambda: None)
    assert ask(path, watch) == b"0\n"
    server.close()

    assert not os.path.exists(path)


def test_a_script_that_goes_away_does_no_harm(path: str, watch: Watch) -> None:
    server = CommitServer(path, watch, lambda: None)
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(path)

    assert ask(path, watch) == b"0\n"
    server.close()
    assert not Path(path).exists()
