"""Where GPU data goes."""

from types import SimpleNamespace

import pytest

from diapause.runtime.store.placement import place

PACKED = "/tmp/ctrd-checkpoint123"
STAYS = "/srv/c1"


@pytest.mark.parametrize(
    ("placement", "size", "image", "memory", "expected"),
    [
        ("auto", 100, PACKED, "", "embedded"),
        ("auto", 101, PACKED, "", "local"),
        ("auto", 101, STAYS, "", "embedded"),
        ("auto", 101, STAYS, "/mem", "local"),
        ("auto", 100, STAYS, "/mem", "embedded"),
        ("embedded", 101, PACKED, "/mem", "embedded"),
        ("local", 1, STAYS, "", "local"),
    ],
)
def test_what_is_large_stays_out_of_what_is_packed(
    placement: str, size: int, image: str, memory: str, expected: str
) -> None:
    settings = SimpleNamespace(placement=placement, embed_limit=100, memory_dir=memory)

    assert place(size, settings, image) == expected
