"""The library that travels in a snapshot is the one that the manifest names, or none."""

import hashlib
import os
from pathlib import Path

import pytest

from diapause.runtime.store import layout, library

MACHINE = {"x86_64": 62, "aarch64": 183}[os.uname().machine]


def elf(*, kind: int = 3, machine: int = MACHINE, word: bytes = b"\x02\x01") -> bytes:
    head = b"\x7fELF" + word + bytes(10)
    return head + kind.to_bytes(2, "little") + machine.to_bytes(2, "little") + b"code" * 20


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def test_it_comes_out_as_it_went_in_and_is_a_part_of_the_snapshot(tmp_path: Path) -> None:
    (tmp_path / "lib").write_bytes(elf())
    library.put(str(tmp_path), str(tmp_path / "lib"))

    assert library.take(str(tmp_path), digest(elf())) == elf()
    assert layout.is_part(layout.LIBRARY)
    assert layout.is_flat(layout.LIBRARY)
    assert (tmp_path / layout.LIBRARY).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("source", ["", "/no/such/library"])
def test_a_dump_without_one_leaves_none_of_an_earlier_dump(tmp_path: Path, source: str) -> None:
    (tmp_path / layout.LIBRARY).write_bytes(elf())
    for _ in range(2):
        library.put(str(tmp_path), source)
        assert not (tmp_path / layout.LIBRARY).exists()


def test_another_digest_is_another_library(tmp_path: Path) -> None:
    (tmp_path / layout.LIBRARY).write_bytes(elf() + b"!")
    with pytest.raises(ValueError, match="has the digest"):
        library.take(str(tmp_path), digest(elf()))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x7fELF",
        b"#!/bin/sh\n" * 20,
        elf(kind=2),
        elf(machine=3),
        elf(word=b"\x01\x01"),
        elf(word=b"\x02\x02"),
    ],
)
def test_what_is_no_library_of_this_machine_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / layout.LIBRARY).write_bytes(data)
    with pytest.raises(ValueError, match="is no 64-bit library"):
        library.take(str(tmp_path), digest(data))


def test_links_and_large_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").write_bytes(elf())
    (tmp_path / layout.LIBRARY).symlink_to("real")
    with pytest.raises(OSError, match="symbolic links"):
        library.take(str(tmp_path), digest(elf()))
    monkeypatch.setattr(library, "LIMIT", 10)
    (tmp_path / layout.LIBRARY).unlink()
    (tmp_path / layout.LIBRARY).write_bytes(elf())
    with pytest.raises(OSError, match="too large"):
        library.take(str(tmp_path), digest(elf()))
