import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diapause.runtime.engine.control.frame import LIMIT, Frame, FrameError, Hello, path_hash

u32 = st.integers(0, 2**32 - 1)
frames = st.builds(
    Frame,
    op=st.integers(0, 65535),
    epoch=u32,
    seq=u32,
    payload=st.binary(max_size=200),
    status=st.integers(0, 1),
)

# hello with epoch 5 and seq 1, as the C test sends it
REQUEST = bytes.fromhex("44495046 0100 0100 0100 0000 05000000 01000000 00000000 00000000 00000000")


def test_a_request_has_the_bytes_of_the_header_file():
    assert Frame(op=1, epoch=5, seq=1).encode() == REQUEST


@given(frames)
def test_what_was_encoded_is_decoded(frame):
    assert Frame.decode(frame.encode()) == frame


@given(st.binary(max_size=300))
def test_any_bytes_are_a_frame_or_refused(data):
    try:
        frame = Frame.decode(data)
    except FrameError:
        return
    assert len(frame.payload) == len(data) - 32


@given(frames, st.data())
def test_a_changed_length_is_refused(frame, data):
    message = bytearray(frame.encode())
    wrong = data.draw(u32.filter(lambda n: n != len(frame.payload)))
    struct.pack_into("<I", message, 20, wrong)

    with pytest.raises(FrameError, match="length"):
        Frame.decode(bytes(message))


@given(st.integers(0, 65535), st.integers(0, 40))
def test_file_descriptors_must_come_as_announced(announced, came):
    message = bytearray(REQUEST)
    struct.pack_into("<H", message, 10, announced)

    if announced == came <= 16:
        Frame.decode(bytes(message), fds=came)
    else:
        with pytest.raises(FrameError, match="file descriptors"):
            Frame.decode(bytes(message), fds=came)


@pytest.mark.parametrize("size", [0, 1, 31, LIMIT + 1])
def test_a_message_of_an_impossible_size_is_refused(size):
    with pytest.raises(FrameError, match=f"message of {size} bytes"):
        Frame.decode(bytes(size))


def test_a_payload_over_the_limit_is_not_sent():
    Frame(op=1, epoch=1, seq=1, payload=bytes(LIMIT - 32)).encode()
    with pytest.raises(FrameError):
        Frame(op=1, epoch=1, seq=1, payload=bytes(LIMIT - 31)).encode()


def test_a_newer_major_is_refused_unless_it_says_that_ours_is_unknown():
    message = bytearray(REQUEST)
    struct.pack_into("<H", message, 4, 2)
    with pytest.raises(FrameError, match="major 2"):
        Frame.decode(bytes(message))

    struct.pack_into("<I", message, 24, 2)
    assert Frame.decode(bytes(message)).major == 2


def test_an_answer_belongs_to_its_request():
    request = Frame(op=1, epoch=5, seq=1)

    assert Frame(op=1, epoch=5, seq=1, payload=b"x", status=3).answers(request)
    assert not Frame(op=2, epoch=5, seq=1).answers(request)
    assert not Frame(op=1, epoch=4, seq=1).answers(request)
    assert not Frame(op=1, epoch=5, seq=2).answers(request)


@given(st.binary(max_size=47))
def test_a_short_hello_is_refused(data):
    with pytest.raises(FrameError, match="hello"):
        Hello.parse(data)


@given(st.binary(min_size=56, max_size=100))
def test_a_hello_of_a_newer_minor_is_read_as_far_as_it_is_known(data):
    assert Hello.parse(data) == Hello.parse(data[:56])


@given(st.binary(min_size=48, max_size=55))
def test_a_hello_of_the_first_minor_knows_no_thread(data):
    hello = Hello.parse(data)

    assert hello == Hello.parse(data[:48])
    assert (hello.thread, hello.gate) == (0, 0)


def test_paths_are_told_apart_by_fnv_1a():
    assert path_hash("") == 0xCBF29CE484222325
    assert path_hash("a") == 0xAF63DC4C8601EC8C
    assert path_hash("foobar") == 0x85944171F73967E8
