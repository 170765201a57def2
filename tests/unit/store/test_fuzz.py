"""Random changes of sound files: the readers refuse in our words, or what they accept makes sense."""

import json
import random
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ...fuzz import readers

ARCHIVE = Path(__file__).parent / "golden" / "format-1.tar.xz"
ROUNDS = 1500  # of each file: a second or two
INTERESTING = (0, 1, 0x7F, 0x80, 0xFF)
FILES = {
    "gpu_index": ["embedded/diapause-gpu.idx"],
    "manifest": ["driver/diapause.json", "embedded/diapause.json"],
    "sealed_manifest": ["driver/diapause.json", "embedded/diapause.json", "local/diapause.json"],
    "entry": ["store/golden-20261201T160000Z-c0ffee/diapause-local.json"],
}


@pytest.fixture(scope="module")
def golden() -> dict[str, bytes]:
    """The small files of the archive."""
    found = {}
    with tarfile.open(ARCHIVE) as archive:
        for member in archive:
            if member.isfile() and member.size < 1 << 16:
                file = archive.extractfile(member)
                assert file is not None
                found[member.name.partition("/")[2]] = file.read()
    return found


def changed(data: bytes, chance: random.Random) -> bytes:
    """A few changes: a byte, a number, a piece gone, twice or elsewhere."""
    out = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(out) + 1)
        end = min(len(out), at + chance.choice((1, 2, 4, 8, 24, 40, 100)))
        kind = chance.randrange(6)
        if kind == 0:
            out[at:end] = bytes(chance.choice(INTERESTING) for _ in range(end - at))
        elif kind == 1:
            out[at:end] = chance.randbytes(end - at)
        elif kind == 2:
            del out[at:end]
        elif kind == 3:
            out[at:at] = out[at:end]
        elif kind == 4 and at < len(out):
            out[at] ^= 1 << chance.randrange(8)
        else:
            piece = bytes(out[at:end])
            del out[at:end]
            place = chance.randrange(len(out) + 1)
            out[place:place] = piece
    return bytes(out)


@pytest.mark.parametrize(("target", "name"), [(t, n) for t, names in FILES.items() for n in names])
def test_changed_files(golden: dict[str, bytes], target: str, name: str) -> None:
    chance = random.Random(f"{target} {name}")
    read = readers.TARGETS[target]
    read(golden[name])
    for _ in range(ROUNDS):
        data = changed(golden[name], chance)
        try:
            read(data)
        except Exception as error:
            raise AssertionError(f"{target}: {data!r}") from error


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 70), 1 << 70) | st.floats() | st.text(max_size=5)
    | st.sampled_from(["index", "local", "embedded", "gpu-data", "diapause-gpu-0.img", "..", "a/b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value in a document."""
    found = [path]
    if isinstance(value, dict):
        for key in value:
            found += places(value[key], (*path, key))
    if isinstance(value, list):
        for number, each in enumerate(value):
            found += places(each, (*path, number))
    return found


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_value_in_any_place_of_a_manifest(golden: dict[str, bytes], data: st.DataObject) -> None:
    document = json.loads(golden[data.draw(st.sampled_from(FILES["sealed_manifest"]))])
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(places(document)[1:]))
        holder = document
        for step in path[:-1]:
            holder = holder[step]
        if data.draw(st.booleans()):
            holder[path[-1]] = data.draw(VALUES)
        else:
            del holder[path[-1]]
    readers.sealed_manifest_reader(json.dumps(document).encode())
