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
        ({"driver": ...}, "snapshot-malformed"),
        ({"library": ...}, "snapshot-malformed"),
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
    fields = {name: value for name, value in document(**changes).items() if value is not ...}  # ...: left out
    assert code_of(encoded(fields)) == code


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


INDEX = "blake3:" + "cd" * 32


def with_gpu_data(document: Any, files: dict[str, str] | None = None, **changes: Any) -> dict[str, Any]:
    """The fields of a manifest whose GPU data is embedded, in files given as {name: digest}."""
    entry = manifest.gpu_data_entry(
        placement="embedded", name="", host="", bytes=6 << 20, zero=2 << 20, allocations=2, index=INDEX
    )
    if files is None:
        files = {"diapause-gpu.idx": INDEX, "diapause-gpu-0.img": "index"}
    found: dict[str, Any] = document(
        features={"required": ["gpu-data"], "optional": []},
        gpu_data={**entry, **changes},
        files=[{"name": name, "size": 1, "digest": digest} for name, digest in files.items()],
    )
    return found


def test_gpu_data_is_a_feature_that_a_reader_has_to_know(document: Any) -> None:
    fields = with_gpu_data(document)

    found = manifest.decode(encoded(fields), WHERE)

    assert found.gpu_data == fields["gpu_data"]
    assert manifest.decode(encoded(document()), WHERE).gpu_data is None


def test_gpu_data_may_lie_elsewhere(document: Any) -> None:
    fields = with_gpu_data(document, {"diapause-gpu.idx": INDEX}, placement="local", name="c1-x", host="n1")

    found = manifest.decode(encoded(fields), WHERE)

    assert found.gpu_data is not None
    assert found.gpu_data["name"] == "c1-x"


@pytest.mark.parametrize(
    ("files", "changes", "why"),
    [
        (None, {"placement": "remote"}, "placement 'remote'"),
        (None, {"name": "c1"}, "a local name for what is embedded"),
        (None, {"name": None}, "another type"),
        (None, {"bytes": -1}, "another type"),
        (None, {"zero": 7 << 20}, "7340032 of 6291456 bytes are zeros"),
        (None, {"index": "blake3:ee"}, "another digest"),
        (None, {"placement": "local", "name": "c1"}, "data files beside it"),
        ({"diapause-gpu.idx": INDEX}, {"placement": "local", "name": "../c1"}, "no name"),
        ({"diapause-gpu.idx": INDEX}, {"placement": "local", "name": ""}, "no name"),
        ({}, {}, "another digest"),
        ({"diapause-gpu.idx": INDEX, "diapause-gpu-0.img": INDEX}, {}, "'index' belongs to data files"),
        ({"diapause-gpu.idx": INDEX, "pages-1.img": "index"}, {}, "'index' belongs to data files"),
        ({"diapause-gpu.idx": INDEX, "diapause-gpu-00.img": "index"}, {}, "'index' belongs to data files"),
    ],
)
def test_what_is_said_of_gpu_data_has_to_agree(
    document: Any, files: dict[str, str] | None, changes: dict[str, Any], why: str
) -> None:
    with pytest.raises(InvalidArgument, match=why) as caught:
        manifest.decode(encoded(with_gpu_data(document, files, **changes)), WHERE)
    assert caught.value.code == "snapshot-malformed"


def test_data_files_need_the_feature_and_the_feature_its_entry(document: Any) -> None:
    files = [{"name": "diapause-gpu-0.img", "size": 1, "digest": "index"}]
    index = [{"name": "diapause-gpu.idx", "size": 1, "digest": INDEX}]
    feature = {"required": ["gpu-data"], "optional": []}
    entry = with_gpu_data(document)["gpu_data"]
    for changes in ({"files": files}, {"files": index}, {"features": feature}, {"gpu_data": entry}):
        assert code_of(encoded(document(**changes))) == "snapshot-malformed"


def test_a_phase_may_say_when_it_began(document: Any) -> None:
    good = [{"name": "copy", "ms": 2, "bytes": 1, "start_ms": 0.5}]

    assert manifest.decode(encoded(document(phases=good)), WHERE).phases == good
    assert code_of(encoded(document(phases=[{**good[0], "start_ms": "0"}]))) == "snapshot-malformed"
