import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diapause.runtime.engine.control import payload
from diapause.runtime.engine.control.frame import FrameError

# as the C test of the hand-over sees them
MEMORY = struct.pack("<QQQQII", 5, 0x300000200000, 4 << 20, 3_000_000, 1, 1 | 8)
DEVICE = struct.pack("<16sII", bytes(range(16)), 1, 2)


def test_layouts_have_the_sizes_of_the_header_file():
    assert payload.quiesce(1000) == struct.pack("<II", 1000, 0)
    assert payload.ids([1, 2**64 - 1]) == bytes.fromhex("0100000000000000 ffffffffffffffff")
    assert (len(MEMORY), len(DEVICE)) == (40, 24)


def test_memory_and_devices_are_read_as_written():
    (memory,) = payload.parse_memory(MEMORY, 1)
    (device,) = payload.parse_devices(DEVICE)

    assert (memory.id, memory.address, memory.size, memory.used) == (5, 0x300000200000, 4 << 20, 3_000_000)
    assert (memory.device, memory.flags) == (1, payload.MemoryFlag.ATTACHED | payload.MemoryFlag.SHARED)
    assert (device.uuid, device.ordinal, device.contexts) == (bytes(range(16)), 1, 2)


@given(st.binary(max_size=200), st.integers(0, 2**64 - 1))
def test_any_bytes_are_a_list_of_memory_or_refused(data, first):
    try:
        found = payload.parse_memory(data, first)
    except FrameError:
        return
    assert len(found) * 40 == len(data)
    assert all(entry.used <= entry.size < 2**48 and entry.id >= first for entry in found)


def test_ids_rise_and_start_where_asked():
    with pytest.raises(FrameError, match="allocation 5 after 6"):
        payload.parse_memory(MEMORY, 6)
    with pytest.raises(FrameError, match="allocation 5 after 6"):
        payload.parse_memory(MEMORY + MEMORY, 1)


def test_a_device_is_named_once():
    with pytest.raises(FrameError):
        payload.parse_devices(DEVICE + DEVICE)


@given(st.binary(max_size=300))
def test_stats_of_a_newer_library_are_read_as_far_as_they_are_known(data):
    if len(data) < 112:
        with pytest.raises(FrameError):
            payload.Stats.parse(data)
    else:
        assert payload.Stats.parse(data) == payload.Stats.parse(data[:112])


def test_times_are_cut_to_what_a_request_can_say():
    assert payload.quiesce(-5) == bytes(8)
    assert payload.quiesce(2**40) == b"\xff\xff\xff\xff" + bytes(4)
