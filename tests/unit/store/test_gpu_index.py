"""The index of GPU data: what is written is read, and what nobody could have written is refused."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diapause.runtime.errors import InvalidArgument
from diapause.runtime.store import gpu_index
from diapause.runtime.store.gpu_index import BLOCK, ZERO, Allocation, Index, decode, encode

WHERE = "snapshot /i"
HASH = st.integers(0, (1 << 64) - 1)


@st.composite
def indices(draw: st.DrawFn) -> Index:
    """Any index: some devices, allocations of odd sizes, blocks spread over some files in any order."""
    devices = draw(st.lists(st.binary(min_size=16, max_size=16), unique=True, min_size=1, max_size=3))
    keys = draw(st.lists(st.tuples(st.integers(1, 9), HASH), unique=True, max_size=5))
    allocations = [
        Allocation(
            process=process,
            device=draw(st.integers(0, len(devices) - 1)),
            id=id,
            address=draw(st.integers(0, gpu_index.MAX_ADDRESS - 1)),
            size=draw(st.integers(1, 4 * BLOCK)),
            flags=draw(st.integers(0, 255)),
        )
        for process, id in keys
    ]
    files = draw(st.integers(1, 3))
    count = sum(allocation.blocks for allocation in allocations)
    places = draw(st.permutations([(file, slot) for file in range(files) for slot in range(count)]))
    blocks = [
        ZERO if draw(st.booleans()) else (file, slot, draw(HASH), draw(HASH)) for file, slot in places[:count]
    ]
    return Index(devices=devices, files=files, allocations=allocations, blocks=blocks)


def small() -> Index:
    """Two allocations, one of two and a half blocks; the middle block is zeros."""
    return Index(
        devices=[b"\x11" * 16, b"\x22" * 16],
        files=2,
        allocations=[
            Allocation(process=1, device=0, id=7, address=0x3_0000_0000, size=5 * BLOCK // 2),
            Allocation(process=2, device=1, id=7, address=0, size=BLOCK),
        ],
        blocks=[(0, 0, 1, 2), ZERO, (1, 3, 3, 4), (0, 1, 5, 6)],
    )


@given(indices())
@settings(max_examples=60, deadline=None)
def test_what_was_written_is_read(index: Index) -> None:
    assert decode(encode(index), WHERE) == index


@given(indices(), st.data())
@settings(max_examples=100, deadline=None)
def test_a_changed_byte_is_refused_or_gives_another_index(index: Index, data: st.DataObject) -> None:
    good = encode(index)
    at = data.draw(st.integers(0, len(good) - 1))
    bad = bytearray(good)
    bad[at] ^= data.draw(st.integers(1, 255))
    try:
        found = decode(bytes(bad), WHERE)
    except InvalidArgument:
        return
    assert encode(found) == bad


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_refused_in_words(data: bytes) -> None:
    for raw in (data, gpu_index.MAGIC + data, encode(small())[:32] + data):
        with pytest.raises(InvalidArgument):
            decode(raw, WHERE)


def test_sums_and_blocks_of_an_allocation() -> None:
    index = decode(encode(small()), WHERE)

    first, second = index.allocations
    assert index.of(first) == [(0, 0, 1, 2), ZERO, (1, 3, 3, 4)]
    assert index.of(second) == [(0, 1, 5, 6)]
    assert index.bytes == 5 * BLOCK // 2 + BLOCK
    assert index.zero == BLOCK
    assert index.slots() == [2, 4]


def test_a_last_block_of_zeros_counts_as_long_as_it_is() -> None:
    index = small()
    index.blocks = [(0, 0, 1, 2), ZERO, ZERO, ZERO]

    assert index.zero == BLOCK + BLOCK // 2 + BLOCK


def test_the_bytes_are_where_the_specification_says() -> None:
    data = encode(small())

    assert data[:8] == b"DIAPGPU1"
    assert struct.unpack_from("<6I", data, 8) == (1, 2 << 20, 2, 4, 2, 2)
    assert data[32:64] == b"\x11" * 16 + b"\x22" * 16
    assert struct.unpack_from("<iIQQQII", data, 64) == (1, 0, 7, 0x3_0000_0000, 5 << 20, 0, 0)
    assert struct.unpack_from("<iIQQQII", data, 104) == (2, 1, 7, 0, 2 << 20, 3, 0)
    assert struct.unpack_from("<IIQQ", data, 144) == (0, 0, 1, 2)
    assert struct.unpack_from("<IIQQ", data, 168) == (0xFFFFFFFF, 0, 0, 0)
    assert len(data) == 144 + 4 * 24


def _changed(offset: int, format: str, *values: int) -> bytes:
    data = bytearray(encode(small()))
    struct.pack_into(format, data, offset, *values)
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "0 bytes"),
        (b"DIAPGPU2" + bytes(24), "DIAPGPU2"),
        (_changed(12, "<I", 4096), "blocks of 4096 bytes"),
        (_changed(16, "<I", 3), "its header says"),
        (_changed(16, "<I", 0xFFFFFFFF), "4294967295 allocations"),
        (_changed(20, "<I", 0xFFFFFFFF), "4294967295 blocks"),
        (_changed(24, "<I", 0xFFFFFFFF), "4294967295 devices"),
        (_changed(28, "<I", 0xFFFFFFFF), "4294967295 files"),
        (encode(small()) + b"\0", "its header says"),
        (encode(small())[:-1], "its header says"),
        (_changed(48, "<QQ", 0x1111111111111111, 0x1111111111111111), "device comes twice"),
        (_changed(64, "<i", 0), "process 0"),
        (_changed(64, "<i", -1), "process -1"),
        (_changed(104, "<i", 1), "allocation 7 of process 1 comes twice"),
        (_changed(68, "<I", 2), "device 2 of 2"),
        (_changed(88, "<Q", 0), "0 bytes"),
        (_changed(88, "<Q", 1 << 63), "bytes at"),
        (_changed(80, "<Q", 1 << 57), "bytes at"),
        (_changed(96, "<I", 1), "begins with block 1 where 0 comes next"),
        (_changed(128, "<Q", 2 * BLOCK), "4 blocks for 5"),
        (_changed(88, "<Q", 3 * BLOCK + 1), "4 blocks for 5"),
        (_changed(144, "<I", 2), "of 2 files"),
        (_changed(148, "<I", gpu_index.MAX_BLOCKS), "slot 4194304"),
        (_changed(216, "<II", 0, 0), "two blocks in one slot"),
        (_changed(172, "<I", 1), "zeros with a place"),
        (_changed(176, "<Q", 1), "zeros with a place"),
    ],
)
def test_a_contradiction_is_named(data: bytes, why: str) -> None:
    with pytest.raises(InvalidArgument, match=why) as caught:
        decode(data, WHERE)
    assert caught.value.code == "gpu-index-malformed"


def test_a_newer_version_is_named_as_such() -> None:
    with pytest.raises(InvalidArgument) as caught:
        decode(_changed(8, "<I", 2), WHERE)
    assert caught.value.code == "gpu-index-version"


def test_nothing_is_written_that_would_not_be_read() -> None:
    index = small()
    index.files = 1
    with pytest.raises(ValueError, match="of 1 files"):
        encode(index)
    index = small()
    index.allocations[0].process = 1 << 40
    with pytest.raises(ValueError, match="gpu index"):
        encode(index)
