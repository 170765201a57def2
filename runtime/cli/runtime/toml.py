"""TOML of the engines: read with a message that names the file, and written as far as our tables need it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from diapause.runtime.errors import InvalidArgument


def parse(path: str, text: str | None) -> dict[str, Any]:
    try:
        return tomllib.loads(text or "")
    except (tomllib.TOMLDecodeError, RecursionError) as e:
        raise InvalidArgument("engine-config-malformed", path, f"no TOML: {e}", "correct the file") from None


def lookup(data: Mapping[str, Any], keys: Sequence[str]) -> Any:
    """None where a key is missing or something on the way is no table."""
    found: Any = data
    for key in keys:
        if not isinstance(found, dict) or key not in found:
            return None
        found = found[key]
    return found


def merged(below: Any, above: Any) -> Any:
    """Tables are united, whatever else stands in `above` replaces what is below."""
    if isinstance(below, dict) and isinstance(above, dict):
        return {**below, **{key: merged(below.get(key), value) for key, value in above.items()}}
    return above


def table(keys: Sequence[str], values: Mapping[str, Any]) -> str:
    """A table with its sub-tables, as text that ends with a line break."""
    plain = {key: value for key, value in values.items() if not isinstance(value, dict)}
    text = f"[{'.'.join(_key(key) for key in keys)}]\n"
    text += "".join(f"  {_key(key)} = {_value(value)}\n" for key, value in plain.items())
    return text + "".join(
        table([*keys, key], value) for key, value in values.items() if isinstance(value, dict)
    )


def _key(key: str) -> str:
    bare = key.replace("-", "").replace("_", "").isalnum() and key.isascii()
    return key if bare else _text(key)


def _text(text: str) -> str:
    """TOML's strings are JSON's, but for one character that has to be escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    if isinstance(value, list):
        return f"[{', '.join(_value(entry) for entry in value)}]"
    raise TypeError(f"{value!r}")  # dates: no runtime table has one
