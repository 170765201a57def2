"""The restored container's mounts against config.json; the namespace is a fake."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from diapause.runtime.engine.steps import restrict
from diapause.runtime.errors import Internal
from diapause.runtime.linux import mounts

BOTH = ["/usr/lib/libcuda.so.1", "/usr/lib64/libcuda.so.1"]


class Namespace:
    """Mounts are files or folders below `root`; their numbers are those of the inodes."""

    is_ours = False

    def __init__(self, path: Path) -> None:
        self.root = os.open(path, os.O_PATH)
        self.path = path
        self.table: list[Any] = []
        self.looked = self.closed = False

    def mount(self, path: str, attributes: str = "", *, directory: bool = False) -> None:
        place = self.path / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        if directory:
            place.mkdir(exist_ok=True)
        else:
            place.touch()
        self.table.append(
            SimpleNamespace(id=place.stat().st_ino, attributes=mounts.attributes(attributes.split(",")))
        )

    def look(self) -> None:
        self.looked = True

    def run(self, call: Any) -> None:
        call()

    def close(self) -> None:
        self.closed = True
        os.close(self.root)


class Step:
    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (path / "root").mkdir()
        self.namespace = Namespace(path / "root")
        self.config = path / "config.json"
        self.added: list[tuple[str, str]] = []
        self.error: OSError | None = None
        monkeypatch.setattr(restrict, "MountNamespace", lambda pid: self.namespace)
        monkeypatch.setattr(mounts, "of_root", lambda fd: os.fstat(fd).st_ino)
        monkeypatch.setattr(mounts, "add_attributes", self._add)

    def _add(self, fd: int, attributes: int) -> None:
        if self.error is not None:
            raise self.error
        place = os.readlink(f"/proc/self/fd/{fd}").removeprefix(str(self.namespace.path))
        self.added.append((place, mounts.describe(attributes)))

    def run(self, **config: Any) -> list[tuple[str, str]]:
        self.config.write_text(json.dumps(config))
        subject: Any = SimpleNamespace(what="restore c1", init=SimpleNamespace(pid=7))
        restrict.Restrict(subject, str(self.config.parent)).execute()
        return self.added

    def options(self, *paths: str, options: str) -> list[tuple[str, str]]:
        return self.run(mounts=[{"destination": path, "options": options.split(",")} for path in paths])


@pytest.fixture
def step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Step:
    return Step(tmp_path, monkeypatch)


def test_a_mount_that_lost_its_flags_gets_them_back(step: Step) -> None:
    step.namespace.mount(BOTH[0], "ro,nosuid,nodev")
    step.namespace.mount(BOTH[1], "nosuid")

    assert step.options(*BOTH, options="bind,ro,nosuid,nodev") == [(BOTH[1], "ro,nodev")]
    assert step.namespace.closed


def test_a_mount_as_it_should_be_is_not_touched(step: Step, monkeypatch: pytest.MonkeyPatch) -> None:
    step.namespace.mount("/a", "ro,noexec")
    monkeypatch.setattr(Namespace, "run", None)

    assert step.options("/a", options="bind,ro") == []


def test_what_is_not_mounted_is_left_alone(step: Step) -> None:
    step.namespace.mount("/a/b", "")
    (step.namespace.path / "c").touch()

    assert step.options("/none", "/a/b/under", "/a", "/c", options="ro") == []


def test_a_link_of_the_container_does_not_lead_out_of_it(step: Step, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (step.namespace.path / "up").symlink_to(tmp_path / "outside")
    (step.namespace.path / "var").symlink_to("/data")
    step.namespace.mount("/data/x", "")

    assert step.options("/up", "/var/x", options="ro") == [("/data/x", "ro")]


def test_the_last_mount_of_a_place_counts(step: Step) -> None:
    step.namespace.mount("/a", "")
    config = [{"destination": "/a", "options": ["ro"]}, {"destination": "/a", "options": ["nodev"]}]

    assert step.run(mounts=config) == [("/a", "nodev")]


def test_root_and_paths_of_the_kernel_count(step: Step) -> None:
    step.namespace.mount("/", "", directory=True)
    step.namespace.mount("/proc/sys", "", directory=True)
    step.namespace.mount("/proc/acpi", "", directory=True)
    step.namespace.mount("/proc/kcore", "")  # /dev/null on a file
    linux = {"readonlyPaths": ["/proc/sys"], "maskedPaths": ["/proc/acpi", "/proc/kcore", "/proc/none"]}

    assert step.run(root={"readonly": True}, linux=linux) == [
        ("", "ro"), ("/proc/sys", "ro"), ("/proc/acpi", "ro"),
    ]  # fmt: skip


def test_the_restore_is_refused_when_flags_cannot_be_set(step: Step) -> None:
    step.namespace.mount("/a", "")
    step.error = OSError(16, "Device or resource busy", "fd 9")

    with pytest.raises(
        Internal, match="/a of the container is mounted without ro,nodev: Device or"
    ) as caught:
        step.options("/a", options="ro,nodev")
    assert caught.value.code == "mount-flags"
    assert step.namespace.closed


@pytest.mark.parametrize("text", ["{", ""])
def test_the_restore_is_refused_when_nothing_can_be_compared(step: Step, text: str) -> None:
    subject: Any = SimpleNamespace(what="restore c1", init=SimpleNamespace(pid=7))
    if text:
        step.config.write_text(text)
    with pytest.raises(Internal, match=r"cannot be compared with config\.json") as caught:
        restrict.Restrict(subject, str(step.config.parent)).execute()
    assert caught.value.code == "mount-flags"


def test_a_container_in_the_hosts_namespace_has_no_mounts_of_its_own(step: Step) -> None:
    step.namespace.is_ours = True
    step.namespace.mount("/a", "")

    assert step.options("/a", options="ro") == []
    assert not step.namespace.looked
