"""The plain reader against Python's: the same value, or the same refusal."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diapause.runtime import toml

DOCUMENTED = Path(__file__).parents[2] / "configs" / "config.toml"
PIECES = st.sampled_from(
    ["[", "]", "[a]", "b", "=", " = ", '"', "'", '"x y"', "'z'", '"""', "\\", ",", "#", "\n", "\n", " ", "\t",
     "0", "1", "12", "007", "1.5", ".", "1.", "-", "_", "true", "é", "\r\n", "a.b", "{}", "[]", "1e3", "\x7f"]
)  # fmt: skip


def outcome(loads: object, text: str) -> object:
    try:
        return repr(loads(text))  # type: ignore[operator]
    except tomllib.TOMLDecodeError as error:
        return str(error)


@settings(max_examples=1000)
@given(st.lists(PIECES, max_size=24).map("".join))
def test_every_document_reads_as_with_pythons_reader(text: str) -> None:
    assert outcome(toml.loads, text) == outcome(tomllib.loads, text)


@pytest.mark.parametrize(
    "text",
    [
        DOCUMENTED.read_text(encoding="utf-8"),
        "a = 1\n[b]\nc = 'x\\y' # why\nd = [ \"1\", '2', ] # and\ne = 2.50\n",
        "[a] # one\n[b]\n",
    ],
)
def test_a_configuration_is_plain(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = tomllib.loads(text)
    monkeypatch.setattr(tomllib, "loads", None)
    assert toml.loads(text) == expected


@pytest.mark.parametrize("text", ["[a]\n[a]", "a = 1\na = 2", "a = 1\n[a]", "[a", "a", "= 1", "a = ", "[]"])
def test_what_is_wrong_is_refused(text: str) -> None:
    with pytest.raises(tomllib.TOMLDecodeError):
        toml.loads(text)
