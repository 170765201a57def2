import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diapause.runtime.engine.control.page import MAGIC, SIZE, ControlPage, Counter, parse_counters

PAGE = struct.pack("<8sIIiiII8Q", b"DIAPAUS1", 1, 3, 42, 901, 1, 0, *range(10, 18)).ljust(SIZE, b"\0")


def test_a_page_has_the_bytes_of_the_header_file():
    page = ControlPage.parse(PAGE)

    assert page is not None
    assert (page.major, page.minor, page.pid, page.peer, page.gate) == (1, 3, 42, 901, 1)
    assert page.counters[Counter.INIT] == 10
    assert page.counters[Counter.DROPPED] == 16


@pytest.mark.parametrize("length", [0, 8, 88, SIZE - 1])
def test_less_than_a_page_is_none(length):
    assert ControlPage.parse(PAGE[:length]) is None


def test_a_page_that_is_not_published_yet_is_none():
    assert ControlPage.parse(bytes(8) + PAGE[8:]) is None


@given(st.binary(max_size=64))
def test_any_bytes_are_a_page_or_none(data):
    page = ControlPage.parse(MAGIC.to_bytes(8, "little") + data.ljust(SIZE, b"\0"))

    assert page is None or (page.pid > 0 and page.major > 0)


@given(st.binary(max_size=200))
def test_counters_of_any_length_are_read_as_far_as_they_are_known(data):
    assert len(parse_counters(data)) == min(len(data) // 8, len(Counter))
