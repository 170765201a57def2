"""The plain part of TOML, which configurations are written in: tables, and texts, numbers and lists of texts.

Python's reader imports `re`, `enum`, `typing` and `datetime`, which takes as long as everything else that a
verb does. It still reads whatever is not plain, and describes what is wrong.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")


class _NotPlain(Exception):
    pass


def loads(text: str) -> dict[str, Any]:
    """The document. Raises tomllib.TOMLDecodeError, RecursionError."""
    try:
        return _plain(text)
    except _NotPlain:
        from tomllib import loads as slow

        return slow(text)


def _plain(text: str) -> dict[str, Any]:
    if not text.isascii() or not text.replace("\n", "").replace("\t", "").isprintable():
        raise _NotPlain
    document: dict[str, Any] = {}
    table = document
    for written in text.split("\n"):
        line = written.strip(" \t")
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            name, closed, rest = line[1:].partition("]")
            if not closed:
                raise _NotPlain
            table = {}
            _add(document, name, table)
        else:
            name, _, rest = line.partition("=")
            value, rest = _value(rest.strip(" \t"))
            _add(table, name, value)
        _expect_end(rest)
    return document


def _add(table: dict[str, Any], name: str, value: Any) -> None:
    name = name.strip(" \t")
    if not name or not _BARE.issuperset(name) or name in table:
        raise _NotPlain
    table[name] = value


def _expect_end(rest: str) -> None:
    rest = rest.strip(" \t")
    if rest and not rest.startswith("#"):
        raise _NotPlain


def _value(text: str) -> tuple[Any, str]:
    """The value that `text` begins with, and what follows it."""
    if text.startswith("["):
        return _texts(text[1:])
    if text[:1] in ('"', "'"):
        return _text(text)
    number = text.partition("#")[0].strip(" \t")
    whole, point, fraction = number.partition(".")
    if not whole.isdigit() or (whole[0] == "0" and whole != "0") or (point and not fraction.isdigit()):
        raise _NotPlain
    return (float(number) if point else int(whole)), ""


def _text(text: str) -> tuple[str, str]:
    body, end, rest = text[1:].partition(text[:1])
    if not end or (text[0] == '"' and "\\" in body):
        raise _NotPlain
    return body, rest


def _texts(rest: str) -> tuple[list[str], str]:
    found: list[str] = []
    while not (rest := rest.strip(" \t")).startswith("]"):
        if rest[:1] not in ('"', "'") or not rest:
            raise _NotPlain
        body, rest = _text(rest)
        found.append(body)
        rest = rest.strip(" \t")
        if rest.startswith(","):
            rest = rest[1:]
        elif not rest.startswith("]"):
            raise _NotPlain
    return found, rest[1:]
