"""JSON without the import of `re`, which would cost as much as everything else on a verb's path.

The C halves of the standard library's json are used directly; where they are missing or differ, and to
describe an error, the whole module is imported.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no JSON value")


class _Strict:
    """What the C scanner wants to know."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = staticmethod(_no_number)  # NaN and the infinities: nobody else would read them again
    memo: dict[str, str] = {}  # noqa: RUF012


def loads(text: str) -> Any:
    """The value; raises ValueError, which names line and column of what is malformed."""
    stripped = text.strip(" \t\n\r")
    try:
        from _json import make_scanner

        value, end = make_scanner(_Strict)(stripped, 0)  # type: ignore[arg-type]
        if end == len(stripped):
            return value
    except (ImportError, AttributeError, TypeError, ValueError, StopIteration, SystemError):
        pass  # SystemError: it wants to raise an error of json.decoder, which is not imported (3.11)
    from json import loads as slow

    return slow(text, parse_constant=_no_number)


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
