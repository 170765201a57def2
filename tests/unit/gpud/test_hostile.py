"""Messages that no client of ours sends: the controller answers with an error, and goes on."""

import json
import os
import random
import socket
from collections.abc import Iterator

import pytest

from diapause.runtime.gpud import wire
from diapause.runtime.gpud.client import _try
from diapause.runtime.store.gpu_index import BLOCK

GPU = "GPU-d1a9a05e-50f7-4000-8000-000000000000"
C = "c0ffee00" * 4
ENTRY = [1, 1, BLOCK, 0, 0, 0]


@pytest.fixture
def raw(controller) -> Iterator[socket.socket]:
    """A connection of our own, beside the well-behaved one."""
    end = _try(GPU)
    assert end
    end.settimeout(20)
    with end:
        yield end


def ask(end: socket.socket, message: dict[str, object], fds: list[int] | None = None) -> dict[str, object]:
    wire.send(end, {"seq": 1, **message}, fds or [])
    received = wire.receive(end)
    assert received
    wire.close_all(received[1])
    return received[0]


NO_MESSAGES = [
    b"", b"\0" * 100, b"{", b"[]", b"1", b'"hello"', b"{}", b'{"v":2,"op":"hello"}', b'{"v":true}',
    b'{"v":1e999,"op":"hello"}', b"[" * 60000, b"\xff" * 65536, b'{"v":1,' + b" " * 65536 + b"}",
]  # fmt: skip


def test_what_is_no_message_ends_the_connection_alone(controller, deadline):
    for data in NO_MESSAGES:
        end = _try(GPU)
        assert end
        with end:
            end.settimeout(20)
            end.send(data) if data else end.shutdown(socket.SHUT_WR)

            answer = end.recv(65536)
            assert not answer or json.loads(answer)["error"]["code"] == "gpud-no-message", data[:80]
            assert end.recv(65536) == b""
    assert controller.hello(deadline).gpu == GPU


NO_SENSE = [
    ({}, "gpud-unknown-op"),
    ({"op": "__init__"}, "gpud-unknown-op"),
    ({"op": "let_go"}, "gpud-unknown-op"),
    ({"op": ["hello"]}, "gpud-unknown-op"),
    ({"op": "begin"}, "gpud-bad-request"),
    ({"op": "begin", "container": ""}, "gpud-bad-request"),
    ({"op": "begin", "container": "../x"}, "gpud-bad-request"),
    ({"op": "begin", "container": ".x"}, "gpud-bad-request"),
    ({"op": "begin", "container": "a\nb"}, "gpud-bad-request"),
    ({"op": "begin", "container": "x" * 200}, "gpud-bad-request"),
    ({"op": "take", "container": C}, "gpud-bad-request"),
    ({"op": "take", "container": C, "allocations": {}}, "gpud-bad-request"),
    ({"op": "take", "container": C, "allocations": [ENTRY] * 101}, "gpud-bad-request"),
    ({"op": "take", "container": C, "allocations": [ENTRY, ENTRY]}, "gpud-bad-request"),
    ({"op": "take", "container": C, "allocations": [[0, *ENTRY[1:]]]}, "gpud-bad-request"),
    ({"op": "take", "container": C, "allocations": [[1 << 31, *ENTRY[1:]]]}, "gpud-bad-request"),
    ({"op": "take", "container": C, "allocations": [[1, -1, *ENTRY[2:]]]}, "gpud-bad-request"),
    ({"op": "take", "container": C, "allocations": [[1, 1, 0, *ENTRY[3:]]]}, "gpud-bad-request"),
    ({"op": "take", "container": C, "allocations": [[1, 1, 1 << 63, *ENTRY[3:]]]}, "gpud-bad-request"),
    ({"op": "take", "container": C, "allocations": [[1, 1, 1.5, *ENTRY[3:]]]}, "gpud-bad-request"),
    ({"op": "take", "container": C, "allocations": [[1, 1, True, *ENTRY[3:]]]}, "gpud-bad-request"),
    ({"op": "take", "container": C, "allocations": [[1, 1, BLOCK, 1 << 60, 0, 0]]}, "gpud-bad-request"),
    ({"op": "take", "container": C, "allocations": [[1, 1, BLOCK, 0, 0, 1]]}, "gpud-bad-request"),
    ({"op": "take", "container": C, "allocations": [[1, 1, BLOCK, 0, 0, 2]]}, "gpud-bad-request"),
    ({"op": "take", "container": C, "allocations": [[1, 1, BLOCK]]}, "gpud-bad-request"),
    ({"op": "take", "container": C, "allocations": [ENTRY]}, "gpud-not-held"),
    ({"op": "save", "container": C}, "gpud-bad-request"),
    ({"op": "save", "container": C, "sync": 1}, "gpud-bad-request"),
    ({"op": "save", "container": C, "part": 16}, "gpud-bad-request"),
    ({"op": "load", "container": C}, "gpud-bad-request"),
    ({"op": "load", "container": C, "digest": 5}, "gpud-bad-request"),
    ({"op": "wait", "container": C, "ms": 1}, "gpud-no-job"),
    ({"op": "wait", "container": C, "ms": 1001}, "gpud-bad-request"),
    ({"op": "wait", "container": C, "ms": -1}, "gpud-bad-request"),
    ({"op": "held", "container": C, "first": -1}, "gpud-bad-request"),
    ({"op": "give", "container": C, "process": 1, "ids": [1, 1]}, "gpud-bad-request"),
    ({"op": "give", "container": C, "process": 1, "ids": list(range(101))}, "gpud-bad-request"),
    ({"op": "give", "container": C, "process": 1, "ids": [1]}, "gpud-not-held"),
    ({"op": "give", "container": C, "process": "1", "ids": []}, "gpud-bad-request"),
    ({"op": "watch", "container": C, "process": 1}, "gpud-bad-request"),
]


def test_a_request_that_makes_no_sense_is_answered_with_an_error(raw, controller, deadline):
    pid = controller.hello(deadline).pid
    for message, code in NO_SENSE:
        assert ask(raw, message)["error"]["code"] == code, message
    assert ask(raw, {"op": "hello"})["pid"] == pid


def test_a_directory_has_to_be_one_and_a_pidfd(raw):
    fd = os.open("/dev/null", os.O_RDONLY)
    try:
        for op in ("save", "load", "watch"):
            answer = ask(raw, {"op": op, "container": C, "process": 1}, [fd])
            assert answer["error"]["code"] == "gpud-bad-request", op
    finally:
        os.close(fd)


def test_file_descriptors_that_nobody_wants_are_closed(raw, controller, deadline):
    pid = controller.hello(deadline).pid
    before = len(os.listdir(f"/proc/{pid}/fd"))
    read, write = os.pipe()
    for op in ("hello", "begin", "take", "save", "nonsense", "forget") * 5:
        ask(raw, {"op": op, "container": C}, [write] * 100)
    os.close(write)

    assert os.read(read, 1) == b""  # nobody has the other end
    os.close(read)
    assert len(os.listdir(f"/proc/{pid}/fd")) <= before


def test_noise_changes_nothing(controller, program, container, deadline, allocation):
    """A thousand messages of the right words in the wrong places."""
    (fd,) = program.make([1])
    controller.begin(container, deadline)
    controller.take(container, [allocation(1, 1)], {1: fd}, deadline)
    noise = random.Random(1)
    words = ["begin", "take", "wait", "held", "give", "watch", "container", "op", "ids", C[:-1] + "1", 0, -1]
    words += [None, True, [], {}, [[]], 1 << 64, "", "x" * 1000, [ENTRY], 1, 2, "process", "allocations"]
    for _ in range(10):
        end = _try(GPU)
        assert end
        with end:
            end.settimeout(20)
            for _ in range(100):
                keys = ["op", "container", "process", "ids", "allocations", "first", "ms"]
                message = {key: noise.choice(words) for key in keys if noise.random() < 0.8}
                answer = ask(end, message)
                assert answer["seq"] == 1
                assert answer.get("error", {"code": ""})["code"] != "gpud-bug", (message, answer)

    assert [a.id for a in controller.held(container, deadline)] == [1]


def test_only_so_many_are_served_at_once(controller, deadline):
    ends = [_try(GPU) for _ in range(70)]
    served = 0
    for end in ends:
        assert end
        end.settimeout(20)
        try:
            ask(end, {"op": "hello"})
            served += 1
        except (AssertionError, OSError):
            pass
    for end in ends:
        assert end
        end.close()
    assert served == 63
    assert controller.hello(deadline).gpu == GPU
