import json as standard
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diapause.runtime import json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_it_agrees_with_the_standard_library(value: Any) -> None:
    text = json.dumps(value)
    assert text == standard.dumps(value, separators=(",", ":"))
    assert json.loads(f" \n{text}\t") == value


@pytest.mark.parametrize("text", ["", "{", '{"a": \n x}', "[1] 2", "{'a': 1}", '"\n"'])
def test_a_malformed_text_is_described_by_line_and_column(text: str) -> None:
    with pytest.raises(ValueError, match=r"line \d+ column \d+"):
        json.loads(text)


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(TypeError):
        json.dumps({"a": object()})
