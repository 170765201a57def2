"""Messages and the errors that travel in them."""

import os
import socket

import pytest

from diapause.runtime import errors
from diapause.runtime.gpud import wire


@pytest.fixture
def ends():
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    b.settimeout(5)
    with a, b:
        yield a, b


def test_a_message_arrives_with_its_file_descriptors(ends):
    read, write = os.pipe()
    wire.send(ends[0], {"op": "hello", "seq": 3}, [read, write])

    message, fds = wire.receive(ends[1])

    assert message == {"op": "hello", "seq": 3}
    os.write(fds[1], b"same")
    assert os.read(read, 10) == b"same"
    assert not any(os.get_inheritable(fd) for fd in fds)
    wire.close_all([read, write, *fds])


def test_the_end_is_no_message(ends):
    ends[0].close()
    assert wire.receive(ends[1]) is None


@pytest.mark.parametrize("fds", [0, wire.FDS + 1])
def test_what_is_too_long_is_not_sent(ends, fds):
    read, write = os.pipe()
    message = {"op": "x" * (wire.LIMIT if not fds else 1)}

    with pytest.raises(wire.WireError):
        wire.send(ends[0], message, [read] * fds)
    wire.close_all([read, write])


def test_the_fds_of_what_is_no_message_are_closed(ends):
    read, write = os.pipe()
    socket.send_fds(ends[0], [b"nonsense"], [write])
    os.close(write)

    with pytest.raises(wire.WireError, match="no JSON"):
        wire.receive(ends[1])
    assert os.read(read, 1) == b""
    os.close(read)


@pytest.mark.parametrize("kind", ["NotFound", "Unavailable", "FailedPrecondition", "InvalidArgument"])
def test_an_error_arrives_as_what_it_was(kind):
    error = getattr(errors, kind)("some-code", "what", "why", "todo")

    again = wire.error_from(wire.error_value(error))

    assert type(again) is type(error)
    assert str(again) == str(error)


def test_an_error_of_a_kind_that_is_not_known_is_an_internal_one():
    value = wire.error_value(errors.NotFound("c", "w", "y")) | {"kind": "SystemExit"}
    assert type(wire.error_from(value)) is errors.Internal


@pytest.mark.parametrize("value", [None, [], {}, {"code": 1, "what": "", "why": "", "todo": ""}])
def test_an_error_without_its_parts_is_none(value):
    with pytest.raises(wire.WireError):
        wire.error_from(value)
