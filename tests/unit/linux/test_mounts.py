"""Tables of mounts; a mount namespace of a child, as root."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from diapause.runtime.linux import libc, mounts, openat2
from diapause.runtime.linux.namespace import MountNamespace

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mount namespaces need root")

LINES = rb"""29 1 254:0 / / rw,relatime shared:1 - ext4 /dev/root rw
30 29 0:22 / /a\040b ro,nosuid,nodev,noexec,noatime - tmpfs tmpfs rw
31 30 0:22 /x /a\040b/c\134d rw,nosymfollow,nodiratime master:1 - tmpfs tmpfs ro
"""
CLONE_NEWNS = 0x20000
PRIVATE = 0x4000 | 0x40000  # MS_REC | MS_PRIVATE
BIND = 0x1000


def test_a_table_is_read() -> None:
    found = mounts.table(LINES)

    assert [(mount.id, mount.point) for mount in found] == [(29, "/"), (30, "/a b"), (31, "/a b/c\\d")]
    assert [mounts.describe(mount.attributes) for mount in found] == [
        "", "ro,nosuid,nodev,noexec,noatime", "nodiratime,nosymfollow",
    ]  # fmt: skip


def test_mounts_below_a_folder_are_found() -> None:
    assert "/proc" in mounts.below(["/proc"])
    assert "/proc" in mounts.below(["/"])
    assert "/proc" not in mounts.below(["/pro", "/proc/1"])


def test_the_root_of_a_mount_is_told_from_what_is_on_it() -> None:
    with open("/proc/self/mountinfo", "rb") as file:
        ids = {mount.point: mount.id for mount in mounts.table(file.read())}
    for path, expected in (("/proc", ids["/proc"]), ("/proc/1", 0)):
        fd = os.open(path, os.O_PATH)
        assert mounts.of_root(fd) == expected
        assert mounts.is_directory(fd)
        os.close(fd)


@pytest.fixture
def other(tmp_path: Path) -> Iterator[int]:
    """A process in a mount namespace of its own, with tmp_path/file on tmp_path/target."""
    (tmp_path / "file").write_text("x")
    (tmp_path / "target").touch()
    ready, done = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            libc.unshare(CLONE_NEWNS)
            for source, target, flags in ((None, "/", PRIVATE), ("file", "target", BIND)):
                path = os.fsencode(tmp_path / target)
                libc.check(
                    libc._mount(source and os.fsencode(tmp_path / source), path, None, flags, None), target
                )
            os.write(done, b"x")
            signal.pause()
        finally:
            os._exit(1)
    os.close(done)
    assert os.read(ready, 1) == b"x"
    os.close(ready)
    yield pid
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


@needs_root
def test_a_mount_of_another_namespace_is_found_and_restricted(other: int, tmp_path: Path) -> None:
    namespace = MountNamespace(other)
    namespace.look()
    before = next(mount for mount in namespace.table if mount.point == str(tmp_path / "target"))
    assert before.attributes & 0xF == 0
    fd = openat2.openat2(namespace.root, str(tmp_path / "target"), os.O_PATH)
    assert mounts.of_root(fd) == before.id
    wanted = mounts.attributes(["ro", "nosuid", "nodev", "noexec", "noatime", "nosymfollow"])

    namespace.run(lambda: mounts.add_attributes(fd, wanted))

    namespace.look()
    after = next(mount for mount in namespace.table if mount.id == before.id)
    assert after.attributes & wanted == wanted
    assert not namespace.is_ours
    assert str(tmp_path / "target") not in mounts.below([str(tmp_path)])  # we never left our own
    os.close(fd)
    namespace.close()


@needs_root
def test_what_fails_over_there_is_raised_here(other: int) -> None:
    namespace = MountNamespace(other)
    fd = os.open("/proc/self", os.O_PATH)
    with pytest.raises(OSError, match="fd "):
        namespace.run(lambda: mounts.add_attributes(fd, mounts.READ_ONLY))
    os.close(fd)
    namespace.close()


def test_ones_own_namespace_is_recognised() -> None:
    namespace = MountNamespace(os.getpid())
    assert namespace.is_ours
    namespace.close()


@needs_root
def test_a_mount_is_detached(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            libc.unshare(CLONE_NEWNS)
            libc.check(libc._mount(None, b"/", None, PRIVATE, None))
            path = os.fsencode(tmp_path / "a")
            libc.check(libc._mount(path, path, None, BIND, None))
            busy = os.open(path, os.O_RDONLY)
            assert mounts.below([str(tmp_path)]) == [str(tmp_path / "a")]
            mounts.detach(str(tmp_path / "a"))
            assert mounts.below([str(tmp_path)]) == []
            os.close(busy)
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
