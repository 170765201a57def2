"""Debian's archive through an apt-get that answers what a machine's sources would make it answer."""

from pathlib import Path

import pytest

from diapause.runtime.components import apt
from diapause.runtime.components.manifest import load
from diapause.runtime.components.recipes.prefix import check_version, needed
from diapause.runtime.components.tool import Tool
from diapause.runtime.errors import FailedPrecondition, Internal


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    release = {"ID": "debian", "VERSION_CODENAME": "bookworm"}
    monkeypatch.setattr("platform.freedesktop_os_release", lambda: release)
    return Tool("component test", tmp_path / "log")


def program(tmp_path: Path, name: str, *lines: str) -> Path:
    path = tmp_path / "bin" / name
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return path


def test_the_mirror_is_the_one_of_the_running_release(tool: Tool, tmp_path: Path) -> None:
    program(
        tmp_path, "apt-get",
        "echo Packages bookworm-security main http://security.example/debian-security/",
        "echo DEP-11 bookworm main http://components.example/debian/",
        "echo Packages nodistro main http://other.example/",
        "echo Packages bookworm contrib http://contrib.example/",
        "echo Packages bookworm main http://mirror.example/debian/",
    )  # fmt: skip

    assert apt.mirror(tool) == "http://mirror.example/debian/"


def test_sources_without_a_mirror_are_refused(tool: Tool, tmp_path: Path) -> None:
    program(tmp_path, "apt-get", "echo Packages noble main http://ubuntu.example/")

    with pytest.raises(FailedPrecondition, match="name no mirror"):
        apt.mirror(tool)


def test_sources_that_apt_cannot_read_are_an_error_of_their_own(tool: Tool, tmp_path: Path) -> None:
    program(tmp_path, "apt-get", "echo E: Malformed entry 1 in list file >&2; exit 100")

    with pytest.raises(FailedPrecondition, match=r"apt cannot read its sources: .*Malformed entry 1"):
        apt.mirror(tool)


def test_another_distribution_is_pointed_to_the_bundle(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "platform.freedesktop_os_release", lambda: {"ID": "fedora", "PRETTY_NAME": "Fedora Linux 43"}
    )

    with pytest.raises(FailedPrecondition, match="this is Fedora Linux 43, not Debian; use the bundle"):
        apt.require_debian(tool.what)


def test_package_lists_are_refreshed_once_when_they_do_not_suffice(tool: Tool, tmp_path: Path) -> None:
    program(
        tmp_path, "apt-get",
        'case "$*" in',
        f"*update*) touch {tmp_path}/fresh ;;",
        f"*download*) [ -e {tmp_path}/fresh ] && touch one.deb ;;",
        "esac",
    )  # fmt: skip
    (tmp_path / "into").mkdir()

    assert apt.download(tool, ["one"], tmp_path / "into") == [tmp_path / "into/one.deb"]


def test_a_missing_tool_is_named(tool: Tool) -> None:
    with pytest.raises(FailedPrecondition, match="no-such-tool is not on this machine"):
        tool.run(["no-such-tool"])


@pytest.mark.parametrize(("said", "good"), [("4.2", True), ("4.10.1", True), ("3.17.1", False), ("", False)])
def test_a_program_of_the_archive_has_to_be_new_enough(
    tool: Tool, tmp_path: Path, said: str, good: bool
) -> None:
    criu = program(tmp_path, "criu", f"echo Version: {said}")

    if good:
        check_version(load()["criu"], criu, tool)
    else:
        with pytest.raises(Internal, match=r"wanted is 4\.2"):
            check_version(load()["criu"], criu, tool)


def test_a_library_that_no_package_brought_is_named(tool: Tool, tmp_path: Path) -> None:
    loader = program(
        tmp_path, "ld.so", f"echo 'liba.so => {tmp_path}/lib/liba.so (0x1)'", "echo 'libb.so => not found'"
    )

    with pytest.raises(Internal, match=r"the packages hold no libb\.so"):
        needed(loader, tmp_path / "lib", Path("/bin/criu"), tool)


def test_only_libraries_of_the_packages_are_taken(tool: Tool, tmp_path: Path) -> None:
    loader = program(
        tmp_path,
        "ld.so",
        f"echo 'liba.so => {tmp_path}/lib/liba.so (0x1)'",
        "echo 'libc.so.6 => /lib/libc.so.6 (0x2)'",
    )

    assert needed(loader, tmp_path / "lib", Path("/bin/criu"), tool) == [tmp_path / "lib/liba.so"]
