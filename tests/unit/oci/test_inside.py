"""Below a directory as if it were the root, against what openat2(2) makes of the same."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from diapause.runtime.linux.openat2 import openat2
from diapause.runtime.oci.inside import open_in

TREE = {"a/b/c": "file", "a/up": "→ ../a/b", "abs": "→ /a/b", "out": "→ ../../../../etc", "loop": "→ loop",
        "a/b/d": "→ /abs/c", "dangling": "→ nowhere", "deep": "→ /a/up/../b/d"}  # fmt: skip


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("root")
    for name, content in TREE.items():
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        if content.startswith("→ "):
            (base / name).symlink_to(content[2:])
        else:
            (base / name).write_text(content)
    return base


def kernel(root: Path, path: str) -> str:
    """The path without links, "" where the kernel finds nothing."""
    top = os.open(root, os.O_PATH)
    try:
        fd = openat2(top, path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return ""
    finally:
        os.close(top)
    found = os.readlink(f"/proc/self/fd/{fd}")
    os.close(fd)
    return "/" + found.removeprefix(str(root)).lstrip("/")


def ours(root: Path, path: str) -> str:
    try:
        fd, found = open_in(str(root), path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return ""
    assert os.readlink(f"/proc/self/fd/{fd}").rstrip("/") == str(root) + found.rstrip("/")
    os.close(fd)
    return found


parts = st.sampled_from(
    ["a", "b", "c", "d", "up", "abs", "out", "loop", "dangling", "deep", "..", ".", "etc"]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(parts, min_size=1, max_size=6))
def test_it_finds_what_the_kernel_finds(root: Path, names: list[str]) -> None:
    path = "/".join(names)
    assert ours(root, path) == kernel(root, path)


def test_a_link_that_leads_out_ends_at_the_root(root: Path) -> None:
    assert ours(root, "out/passwd") == ""
    assert ours(root, "/a/../../../a/b/c") == "/a/b/c"


def test_no_fd_stays_open(root: Path) -> None:
    before = os.listdir("/proc/self/fd")
    for path in ("a/b/c", "loop", "dangling", "deep/x", "a/up/..", "/"):
        ours(root, path)
    assert os.listdir("/proc/self/fd") == before
