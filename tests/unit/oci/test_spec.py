import json
from typing import Any

import pytest

from diapause.runtime.errors import InvalidArgument, NotFound
from diapause.runtime.oci.spec import Spec


def test_unknown_fields_survive_an_edit(bundle: Any) -> None:
    before = bundle.spec
    spec = Spec.load(str(bundle.path))
    spec.annotations["a"] = "b"
    spec.store()

    assert bundle.spec == {**before, "annotations": {"a": "b"}}


def test_the_original_is_kept_beside_the_edited_file(bundle: Any) -> None:
    before = bundle.config.read_bytes()
    for value in ("first", "second"):
        spec = Spec.load(str(bundle.path))
        spec.annotations["a"] = value
        spec.hooks("poststop")[:] = [{"path": "/bin/diapause-hook"}]
        spec.store()

    assert (bundle.path / "config.json.diapause-orig").read_bytes() == before
    assert bundle.spec["annotations"] == {"a": "second"}
    assert len(list(bundle.path.iterdir())) == 3  # config.json, its original, rootfs


def test_a_new_original_replaces_an_old_one(bundle: Any) -> None:
    (bundle.path / "config.json.diapause-orig").write_text("of the run before", encoding="utf-8")
    before = bundle.config.read_bytes()
    spec = Spec.load(str(bundle.path))
    spec.env.append("A=b")
    spec.store()
    assert (bundle.path / "config.json.diapause-orig").read_bytes() == before


def test_mode_and_name_stay(bundle: Any) -> None:
    bundle.config.chmod(0o640)
    spec = Spec.load(str(bundle.path))
    spec.env.append("A=b")
    spec.store()
    assert bundle.config.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "line 1 column 1"),
        ('{"a": 1,\n "b": }', "line 2 column 7"),
        ("[]", "not an object"),
        ("\xff", "line 1"),
        ('{"a": NaN}', "NaN is no JSON value"),
        ('{"a": [-Infinity, {"b": }]}', "no JSON value"),
        ('{"mounts": [{"destination": "/a\\u0000b"}]}', r"mounts\[0\] has no destination"),
        ('{"mounts": [{"destination": "/a", "source": "\\u0000"}]}', r"mounts\[0\].source is no path"),
        ('{"linux": {"resources": []}}', "linux.resources is not an object"),
        ('{"linux": {"resources": {"devices": {}}}}', "linux.resources.devices is not a list"),
        ('{"mounts": {}}', "mounts is not a list"),
        ('{"mounts": [{}]}', r"mounts\[0\] has no destination"),
        ('{"hooks": {"prestart": [{"args": []}]}}', r"hooks.prestart\[0\] has no path"),
        ('{"hooks": {"prestart": {}}, "x": 1, "annotations": []}', "annotations is not an object"),
        ('{"linux": {"devices": [1]}}', r"linux.devices\[0\] has no path"),
        ('{"mounts": [{"destination": "/x", "source": 1}]}', r"mounts\[0\].source is no path"),
        (
            '{"mounts": [{"destination": "/x", "options": "ro"}]}',
            r"mounts\[0\].options is not a list of texts",
        ),
        ('{"hooks": {"prestart": {}}}', "hooks.prestart is not a list"),
        ('{"hooks": {"prestart": [{"path": "/x", "args": [1]}]}}', r"args is not a list of texts"),
        ('{"linux": {"devices": {}}}', "linux.devices is not a list"),
        ('{"process": {"env": {}}}', "process.env is not a list of texts"),
        ('{"annotations": {"a": 1}}', "annotations.a is no text"),
        ("[" * 100000, "not JSON"),
    ],
)
def test_a_malformed_file_is_refused_with_its_place(bundle: Any, text: str, why: str) -> None:
    bundle.config.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidArgument, match=why) as caught:
        Spec.load(str(bundle.path))
    assert str(bundle.config) in str(caught.value)


def test_bytes_that_are_no_utf8_are_read_as_runc_reads_them(bundle: Any) -> None:
    bundle.config.write_bytes(b'{"process": {"env": ["A=\xff"]}}')
    assert Spec.load(str(bundle.path)).env == ["A=\N{REPLACEMENT CHARACTER}"]


@pytest.mark.parametrize("depth", [1, 100, 900, 950, 990, 1000, 1100, 50000])
def test_a_deep_file_is_either_edited_or_refused(bundle: Any, depth: int) -> None:
    bundle.config.write_text('{"x": ' + "[" * depth + "]" * depth + "}", encoding="utf-8")
    before = bundle.config.read_bytes()
    try:
        spec = Spec.load(str(bundle.path))
    except InvalidArgument:
        assert depth > 900
        return
    spec.annotations["a"] = "b"
    try:
        spec.store()
    except InvalidArgument:
        assert bundle.config.read_bytes() == before
    else:
        assert bundle.spec["annotations"] == {"a": "b"}


def test_null_parts_are_empty_ones(bundle: Any) -> None:
    bundle.config.write_text('{"mounts": null, "hooks": null, "linux": null}', encoding="utf-8")
    spec = Spec.load(str(bundle.path))
    spec.mounts.append({"destination": "/x"})
    spec.hooks("poststop").append({"path": "/h"})
    assert spec.data == {
        "mounts": [{"destination": "/x"}],
        "hooks": {"poststop": [{"path": "/h"}]},
        "linux": None,
    }


def test_a_missing_file_is_not_found(bundle: Any) -> None:
    with pytest.raises(NotFound):
        Spec.load(str(bundle.path / "nowhere"))


def test_nothing_is_written_where_nothing_changed(bundle: Any) -> None:
    bundle.config.write_text(json.dumps(bundle.spec, separators=(",", ":")), encoding="utf-8")
    before = bundle.config.stat()
    Spec.load(str(bundle.path)).store()
    assert bundle.config.stat().st_ino == before.st_ino
