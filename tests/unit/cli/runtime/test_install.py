"""What every engine has in common: shown first, done once, undone exactly, refused before harm."""

import json
import os
from pathlib import Path

import pytest

from diapause.runtime.cli.runtime import change
from diapause.runtime.cli.runtime.place import Place
from diapause.runtime.errors import FailedPrecondition, InvalidArgument

from .conftest import PROGRAM, Node

ENGINES = ("containerd", "docker", "nerdctl", "crio", "podman")


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def foreign(node: Node) -> Node:
    """So that each engine has something to write: a program that is nowhere in PATH."""
    node.write("/opt/diapause/bin/diapause-runc", "")
    return node


OTHER = ("--runtime-path", "/opt/diapause/bin/diapause-runc")


def test_a_dry_run_shows_the_difference_and_changes_nothing(foreign: Node, engine: str) -> None:
    before = foreign.files()

    out = foreign.install(engine, *OTHER, "--dry-run")

    assert out.startswith("Would change /")
    assert "+++ /" in foreign.stderr
    assert "/opt/diapause/bin/diapause-runc" in foreign.stderr
    assert foreign.files() == before


def test_install_twice_changes_nothing_the_second_time(foreign: Node, engine: str) -> None:
    foreign.install(engine, *OTHER)
    first = foreign.files()

    assert foreign.install(engine, *OTHER) == "Changed nothing\n"

    assert foreign.files() == first


def test_uninstall_leaves_the_file_system_as_it_was(foreign: Node, engine: str) -> None:
    before = foreign.files()
    foreign.install(engine, *OTHER)
    assert foreign.files() != before

    foreign.uninstall(engine)

    assert foreign.files() == before
    assert foreign.uninstall(engine) == "Changed nothing\n"


def test_another_program_replaces_the_first(foreign: Node, engine: str) -> None:
    foreign.install(engine, *OTHER)
    foreign.install(engine, "--runtime-path", "/srv/diapause-runc")

    assert "/srv/diapause-runc" in str(foreign.files())
    assert "/opt/diapause/bin/diapause-runc" not in str(list(foreign.files().values()))
    foreign.uninstall(engine)
    assert "/srv" not in str(foreign.files())


def test_status_before_and_after(foreign: Node, engine: str) -> None:
    assert "NO " in foreign("status", "--engine", engine, *OTHER, status=1)
    foreign.install(engine, *OTHER)
    assert "NO " not in foreign("status", "--engine", engine, *OTHER)


def test_without_an_engine_status_shows_what_was_installed(node: Node) -> None:
    node.install("docker")
    assert list(json.loads(node("status", "--json"))) == ["docker"]


def test_a_read_only_file_system_is_named_and_nothing_is_touched(
    node: Node, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = node.files()
    monkeypatch.setattr(os, "access", lambda *_: False)

    with pytest.raises(FailedPrecondition, match=r"cannot be written.*\[engine-config-not-written\]"):
        node.install(engine, *OTHER)

    assert node.files() == before
    assert not list(node.root.rglob("*.json"))


def test_a_write_that_fails_takes_back_what_was_done(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.write("/etc/docker/daemon.json", "{}\n")
    before = node.files()
    calls = []

    def write(self: Place, path: str, content: str, *, mode: int = 0o644) -> None:
        calls.append(path)
        raise FailedPrecondition("engine-config-not-written", path, "no space left on device")

    monkeypatch.setattr(Place, "write", write)
    with pytest.raises(FailedPrecondition, match="no space left"):
        node.install("docker")

    assert len(calls) == 2  # the second is the way back
    assert node.files() == before
    assert not list(node.root.rglob("*/runtime/docker.json"))


def test_a_run_that_was_killed_half_way_can_be_undone(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    before = node.files()

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(change, "_put", killed)
        node("install", "--engine", "crio", status=1)
    assert node.path("/var/lib/diapause/runtime/crio.json").exists()
    node.uninstall("crio")

    assert node.files() == before


@pytest.mark.parametrize("content", ["fifo", "directory", "latin-1"])
def test_a_file_that_cannot_be_read_is_named(node: Node, content: str) -> None:
    path = node.path("/etc/docker/daemon.json")
    path.parent.mkdir(parents=True)
    if content == "fifo":
        os.mkfifo(path)
    elif content == "directory":
        path.mkdir()
    else:
        path.write_bytes(b'{"x": "\xe4"}')

    with pytest.raises(InvalidArgument, match=r"/etc/docker/daemon.json.*\[engine-config-unreadable\]"):
        node.install("docker")


def test_the_file_behind_a_link_is_changed_and_the_link_stays(node: Node) -> None:
    path = node.path("/etc/docker/daemon.json")
    file = node.write("/etc/docker/real.json", "{}\n")
    path.symlink_to("real.json")

    node.install("docker")

    assert path.is_symlink()
    assert "diapause" in file.read_text()
    node.uninstall("docker")
    assert file.read_text() == "{}\n"


def test_a_link_out_of_the_root_is_refused(node: Node, host: Path) -> None:
    (host / "outside.json").write_text("{}")
    node.path("/etc/docker").mkdir(parents=True)
    node.path("/etc/docker/daemon.json").symlink_to(host / "outside.json")

    with pytest.raises(InvalidArgument, match=r"\[root-left\]"):
        node.install("docker")

    assert (host / "outside.json").read_text() == "{}"


def test_mode_and_owner_of_a_file_stay(node: Node) -> None:
    path = node.write("/etc/docker/daemon.json", "{}\n")
    path.chmod(0o640)

    node.install("docker")

    assert path.stat().st_mode & 0o777 == 0o640


def test_a_root_that_is_no_directory_is_refused(node: Node) -> None:
    node.root.rmdir()
    with pytest.raises(InvalidArgument, match=r"\[root-missing\]"):
        node.install("docker")


def test_a_record_that_is_none_is_refused(node: Node) -> None:
    node.write("/var/lib/diapause/runtime/docker.json", "{}")
    with pytest.raises(InvalidArgument, match=r"\[engine-record-malformed\]"):
        node.install("docker")


def test_a_program_in_everybodys_path_needs_no_link(node: Node) -> None:
    node.write(PROGRAM, "")
    assert node.install("nerdctl") == "Changed nothing\n"
    assert node.facts("nerdctl")["diapause-runc in PATH"] == (PROGRAM, True)
