"""JSON without the import of `re`, which would cost as much as everything else on a verb's path.

The C halves of the standard library's json are used directly; where they are missing or differ, and to
describe an error, the whole module is imported.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Strict:
    """What the C scanner wants to know."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = {"-Infinity": float("-inf"), "Infinity": float("inf"), "NaN": float("nan")}.__getitem__
    memo: dict[str, str] = {}  # noqa: RUF012


def loads(text: str) -> Any:
    """The value; raises ValueError that names line and column."""
    stripped = text.strip(" \t\n\r")
    try:
        from _json import make_scanner

        value, end = make_scanner(_Strict)(stripped, 0)  # type: ignore[arg-type]
        if end == len(stripped):
            return value
    except (ImportError, AttributeError, TypeError, ValueError, StopIteration, SystemError):
        pass  # SystemError: it wants to raise an error of json.decoder, which is not imported (3.11)
    from json import loads as slow

    return slow(text)


def dumps(value: Any) -> str:
    """Compact text, ASCII only, keys in their order."""
    try:
        from _json import encode_basestring_ascii, make_encoder

        encode = make_encoder({}, _refuse, encode_basestring_ascii, None, ":", ",", False, False, False)
        return "".join(encode(value, 0))
    except (ImportError, AttributeError, TypeError):
        from json import dumps as slow

        return slow(value, separators=(",", ":"), allow_nan=False)


def _refuse(value: object) -> object:
    raise TypeError(f"{type(value).__name__} is no JSON value")
