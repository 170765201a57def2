"""The hash of a block, against values worked out by hand."""

import pytest

from diapause.runtime.store.block_hash import of_block


def test_a_word_of_zero_is_mixed_with_its_place() -> None:
    # fmix64 of the two constants, as murmur3's reference code computes it
    assert of_block(bytes(8), 8) == (_mix(0x9E3779B97F4A7C15), _mix(0xC2B2AE3D27D4EB4F))


def _mix(x: int) -> int:
    for shift, factor in ((33, 0xFF51AFD7ED558CCD), (33, 0xC4CEB9FE1A85EC53), (33, 1)):
        x = (x ^ (x >> shift)) * factor % (1 << 64)
    return x


def test_the_second_word_has_the_second_place_and_sums_wrap() -> None:
    word = 0x0123456789ABCDEF
    data = bytes(8) + word.to_bytes(8, "little")
    c, d = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F
    first = _mix(c) + _mix(word ^ (2 * c % (1 << 64)))
    second = _mix(d) + _mix((word + 2 * d) % (1 << 64))

    assert of_block(data, 16) == (first % (1 << 64), second % (1 << 64))


def test_a_short_block_is_padded_with_zeros() -> None:
    assert of_block(b"abc", 64) == of_block(b"abc" + bytes(61), 64)


@pytest.mark.parametrize("change", [0, 7, 8, 4095])
def test_every_byte_counts(change: int) -> None:
    data = bytearray(range(256)) * 16
    before = of_block(bytes(data), 4096)
    data[change] ^= 0x80

    first, second = of_block(bytes(data), 4096)
    assert first != before[0]
    assert second != before[1]


def test_words_that_changed_places_change_it() -> None:
    a, b = b"01234567", b"89abcdef"

    assert of_block(a + b, 16) != of_block(b + a, 16)
