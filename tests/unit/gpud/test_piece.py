"""Cutting device memory into what is copied at once."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from diapause.runtime.gpud.hasher import Range, _cut
from diapause.runtime.gpud.load import neighbours
from diapause.runtime.gpud.piece import Piece, Places, cut, runs
from diapause.runtime.store.gpu_index import BLOCK, NOWHERE, ZERO

BASE = 0x10000000


def blocks_of(pieces: list[Piece]) -> list[int]:
    for piece in pieces:
        assert piece.address == BASE + piece.first * BLOCK
    return [piece.first + n for piece in pieces for n in range(piece.blocks)]


@given(wanted=st.lists(st.booleans(), min_size=1, max_size=40))
def test_runs_are_the_wanted_blocks_and_no_others(wanted):
    pieces = list(runs(Range(BASE, len(wanted) * BLOCK, 0), wanted))

    assert blocks_of(pieces) == [n for n, good in enumerate(wanted) if good]
    assert all(b.first > a.first + a.blocks for a, b in pairwise(pieces))


def test_the_last_block_may_be_short():
    (piece,) = runs(Range(BASE, BLOCK + 4096, 0), [True, True])
    assert (piece.size, piece.blocks) == (BLOCK + 4096, 2)


@given(blocks=st.integers(1, 60), limit=st.integers(1, 20), short=st.sampled_from([0, 8, 4096]))
def test_cutting_loses_nothing(blocks, limit, short):
    size = blocks * BLOCK - short
    pieces = list(cut(Piece(BASE, size, 0), limit))

    assert blocks_of(pieces) == list(range(blocks))
    assert sum(piece.size for piece in pieces) == size
    assert max(piece.blocks for piece in pieces) <= limit
    ranges = list(_cut([Range(BASE, size, 0)], limit))
    assert [(r.address, r.size, r.first) for r in ranges] == [(p.address, p.size, p.first) for p in pieces]


PLACES = st.lists(
    st.one_of(st.just(ZERO), st.tuples(st.integers(0, 2), st.integers(0, 5), st.just(1), st.just(2))),
    min_size=1, max_size=30,
)  # fmt: skip


@given(blocks=PLACES, limit=st.integers(1, 30))
def test_neighbours_lie_side_by_side_in_one_file(blocks, limit):
    part = Range(BASE, len(blocks) * BLOCK, 0)
    kept = list(neighbours(part, blocks, kept=True, limit=limit))
    zero = list(neighbours(part, blocks, kept=False, limit=limit))

    assert blocks_of(kept) == [n for n, block in enumerate(blocks) if block[0] != NOWHERE]
    assert blocks_of(zero) == [n for n, block in enumerate(blocks) if block[0] == NOWHERE]
    for piece in kept:
        file, slot, _, _ = blocks[piece.first]
        assert piece.blocks <= limit
        for number in range(piece.blocks):
            assert blocks[piece.first + number][:2] == (file, slot + number)


def test_places_are_what_the_index_wants():
    places = Places(4)
    places.hashed(0, [(1, 2, 0), (3, 4, 5), (6, 7, 8), (9, 10, 11)])
    places.keep(Piece(BASE, 2 * BLOCK, 1), 5, 30)
    places.keep(Piece(BASE, BLOCK, 3), 0, 0)

    assert places.blocks() == [ZERO, (5, 30, 3, 4), (5, 31, 6, 7), (0, 0, 9, 10)]
