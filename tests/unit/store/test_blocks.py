"""The fast hash against the one that is written down."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diapause.runtime.store import block_hash, blocks

BUILT = Path(__file__).parents[3] / "build/editable/diapause/native"


@pytest.fixture(scope="module")
def hashes() -> blocks.Hashes:
    if not (BUILT / "lib/libdiapause-blocks.so").exists():
        pytest.skip("libdiapause-blocks.so is not built: make native")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DIAPAUSE_NATIVE_DIR", str(BUILT))
        return blocks.Hashes()


def slowly(data: bytes, block: int) -> list[tuple[int, int]]:
    return [block_hash.of_block(data[at : at + block], block) for at in range(0, len(data), block)]


@settings(deadline=None)
@given(words=st.lists(st.integers(0, 2**64 - 1), max_size=70), block=st.integers(1, 40))
def test_it_is_the_hash_of_the_definition(hashes, words, block):
    data = b"".join(word.to_bytes(8, "little") for word in words)

    found = hashes.of(data, 8 * block)

    assert [(h1, h2) for h1, h2, _ in found] == slowly(data, 8 * block)
    assert [bool(any_) for _, _, any_ in found] == [
        any(data[at : at + 8 * block]) for at in range(0, len(data), 8 * block)
    ]


def test_many_words_of_every_value_give_the_same(hashes):
    data = os.urandom(8 * 4096 + 8)

    assert [h[:2] for h in hashes.of(bytearray(data), 16384)] == slowly(data, 16384)


def test_bytes_that_are_no_whole_words_are_refused(hashes):
    with pytest.raises(ValueError, match="7 bytes are no whole words"):
        hashes.of(bytes(7), 64)
