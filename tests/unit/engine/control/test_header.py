"""Both sides of the channel are written down twice: native/include/diapause_control.h is the other."""

import re
from pathlib import Path

from diapause.runtime.engine.control import frame, page

HEADER = (Path(__file__).parents[4] / "native" / "include" / "diapause_control.h").read_text()


def number(name: str) -> int:
    found = re.search(rf"^#define {name} (\w+?)(?:ull|u)?\b", HEADER, re.M)
    assert found, name
    return int(found[1], 0)


def enum(name: str, prefix: str) -> dict[str, int]:
    found = re.search(rf"enum {name} {{(.*?)}};", HEADER, re.S)
    assert found, name
    values: dict[str, int] = {}
    for key, value in re.findall(rf"\b{prefix}_(\w+)(?: = (\d+))?,", found[1]):
        values[key] = int(value) if value else len(values)
    return values


def test_versions_and_sizes_agree():
    assert number("DIAPAUSE_MAJOR") == page.MAJOR
    assert number("DIAPAUSE_MAJOR_OLDEST") == page.OLDEST
    assert number("DIAPAUSE_PAGE_SIZE") == page.SIZE
    assert number("DIAPAUSE_FRAME_MAX") == frame.LIMIT
    assert number("DIAPAUSE_FRAME_FDS") == frame.FDS
    assert f'#define DIAPAUSE_PAGE_NAME "{page.NAME}"' in HEADER


def test_magic_numbers_agree():
    assert number("DIAPAUSE_PAGE_MAGIC") == page.MAGIC
    assert number("DIAPAUSE_FRAME_MAGIC") == frame.MAGIC


def test_counters_ops_and_statuses_agree():
    assert enum("diapause_counter", "DIAPAUSE_COUNT") == {c.name: c.value for c in page.Counter}
    assert enum("diapause_op", "DIAPAUSE_OP") == {op.name: op.value for op in frame.Op}
    assert enum("diapause_status", "DIAPAUSE") == {s.name: s.value for s in frame.Status}
