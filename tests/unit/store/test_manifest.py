"""The reader of diapause.json takes nothing for granted."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diapause.runtime.errors import InvalidArgument
from diapause.runtime.store import manifest

WHERE = "snapshot /i"


def encoded(fields: dict[str, Any]) -> bytes:
    return manifest.Manifest(fields).encode()


def code_of(data: bytes) -> str:
    with pytest.raises(InvalidArgument) as caught:
        manifest.decode(data, WHERE)
    assert WHERE in str(caught.value)
    return caught.value.code


def test_what_was_written_is_read(document: Any) -> None:
    found = manifest.decode(encoded(document()), WHERE)

    assert (found.engine, found.software, found.library) == ("driver", True, "")
    assert found.driver == document()["driver"]
    assert [(p.pid, p.comm, p.gpu, p.stopped) for p in found.processes] == [(1, "train", True, False)]
    assert found.flags == ["file-locks"]
    assert found.targets == ["/usr/lib/libcuda.so.1"]


def test_the_root_digest_covers_every_field(document: Any) -> None:
    good = json.loads(encoded(document()))
    for key in document():
        changed = {**good, key: "0" if key != "software" else False}
        if key in ("magic", "version", "features"):
            continue  # looked at before
        assert code_of(json.dumps(changed).encode()) == "snapshot-digest", key


def test_the_order_of_keys_and_white_space_do_not_matter(document: Any) -> None:
    good = json.loads(encoded(document()))
    other = json.dumps(dict(reversed(good.items())), indent=3).encode()

    assert manifest.decode(other, WHERE).engine == "driver"


def test_an_unknown_field_is_kept_and_covered(document: Any) -> None:
    data = encoded(document(tomorrow={"b": 1, "a": [None]}))

    assert manifest.decode(data, WHERE).raw["tomorrow"] == {"b": 1, "a": [None]}
    assert code_of(data.replace(b'"b":1', b'"b":2')) == "snapshot-digest"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"version": manifest.VERSION + 1}, "snapshot-version"),
        ({"version": 0}, "snapshot-malformed"),
        ({"version": True}, "snapshot-malformed"),
        ({"version": "1"}, "snapshot-malformed"),
        ({"magic": "other"}, "snapshot-malformed"),
        ({"features": {"required": ["gpu-chunks"]}}, "snapshot-feature"),
        ({"features": {}}, "snapshot-malformed"),
        ({"engine": "magic"}, "snapshot-malformed"),
        ({"software": 1}, "snapshot-malformed"),
        ({"targets": "x"}, "snapshot-malformed"),
        ({"flags": ["leave-running"]}, "snapshot-malformed"),
        ({"tools": {"runc": 1}}, "snapshot-malformed"),
        ({"driver": {"version": "1"}}, "snapshot-malformed"),
        ({"driver": None}, "snapshot-malformed"),
        ({"processes": [{"pid": -1, "comm": "x", "gpu": False, "stopped": False}]}, "snapshot-malformed"),
        ({"processes": [{"pid": 1, "comm": "x", "gpu": False, "stopped": False}] * 2}, "snapshot-malformed"),
        ({"files": [{"name": "a.img", "size": 1 << 63, "digest": ""}]}, "snapshot-malformed"),
        ({"files": [{"name": "../a.img", "size": 1, "digest": ""}]}, "snapshot-malformed"),
        ({"files": [{"name": "/etc/x.img", "size": 1, "digest": ""}]}, "snapshot-malformed"),
        ({"files": [{"name": "dump.log", "size": 1, "digest": ""}]}, "snapshot-malformed"),
        ({"files": [{"name": "a.img", "size": 1, "digest": ""}] * 2}, "snapshot-malformed"),
        ({"id": "x" * 5000}, "snapshot-malformed"),
        ({"phases": [{"name": "x", "ms": -1, "bytes": 0}]}, "snapshot-malformed"),
    ],
)
def test_each_defect_has_its_own_error(document: Any, changes: dict[str, Any], code: str) -> None:
    assert code_of(encoded(document(**changes))) == code


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100000, b'{"magic":NaN}'])
def test_what_is_no_manifest_is_malformed(data: bytes) -> None:
    assert code_of(data) == "snapshot-malformed"


@given(data=st.data())
def test_a_flipped_bit_never_goes_unnoticed(document: Any, data: st.DataObject) -> None:
    good = bytearray(encoded(document()))
    index = data.draw(st.integers(0, len(good) - 1))
    good[index] ^= 1 << data.draw(st.integers(0, 7))
    try:
        found = manifest.decode(bytes(good), WHERE)
    except InvalidArgument:
        return
    # White space, or the same value in another spelling.
    assert found.raw == json.loads(encoded(document()))


@given(data=st.data())
def test_a_truncated_manifest_is_malformed(document: Any, data: st.DataObject) -> None:
    good = encoded(document()).rstrip()
    size = data.draw(st.integers(0, len(good) - 1))

    assert code_of(good[:size]) == "snapshot-malformed"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    key=st.sampled_from(["id", "engine", "driver", "processes", "files", "flags", "tools", "phases"]),
    value=json_values,
)
def test_no_value_of_any_shape_gets_an_unforeseen_error(document: Any, key: str, value: Any) -> None:
    data = encoded(document(**{key: value}))
    try:
        manifest.decode(data, WHERE)
    except InvalidArgument:
        return
    assert type(value) is type(document()[key]) or value is None
