"""Debian's archive without installing anything: download packages, unpack them into a folder."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path

from diapause.runtime.components.tool import Tool
from diapause.runtime.errors import DiapauseError, FailedPrecondition, Internal

_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_ALIASES = {"stable", "oldstable", "testing", "unstable", "sid"}  # in sources, besides a release's name


def require_debian(what: str) -> str:
    """The name of the running release: `bookworm`. Raises FailedPrecondition elsewhere."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        release = {}
    if release.get("ID") != "debian":
        raise FailedPrecondition(
            "debian-needed", what, f"this is {release.get('PRETTY_NAME', 'an unknown system')}, not Debian",
            "use the bundle, which brings everything along",
        )  # fmt: skip
    return release.get("VERSION_CODENAME", "sid")


def download(tool: Tool, packages: Sequence[str], into: Path) -> list[Path]:
    """The named packages of the running release. Refreshes the package lists if they do not suffice."""
    argv = ["apt-get", *_quiet(), "download", *packages]
    try:
        tool.run(argv, cwd=into)
    except Internal:
        tool.run(["apt-get", *_quiet(), "-o", "DPkg::Lock::Timeout=300", "update"])
        tool.run(argv, cwd=into)
    return sorted(into.glob("*.deb"))


def download_closure(tool: Tool, suite: str, packages: Sequence[str], into: Path) -> list[Path]:
    """Packages of another suite with everything they depend on, from the mirror that this machine uses.

    apt works in `into` with lists, status and cache of its own: the machine's configuration of proxies
    applies, and its package state is neither read nor changed.
    """
    for folder in ("lists/partial", "archives/partial"):
        (into / folder).mkdir(parents=True, exist_ok=True)
    signed = f"[signed-by={_KEYRING}] " if _KEYRING.exists() else ""
    (into / "sources.list").write_text(f"deb {signed}{mirror(tool)} {suite} main\n")
    (into / "status").touch()
    options = {
        "Dir::State": into, "Dir::State::Lists": into / "lists", "Dir::State::status": into / "status",
        "Dir::Cache": into, "Dir::Cache::Archives": into / "archives",
        "Dir::Etc::sourcelist": into / "sources.list", "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Etc::preferences": "/dev/null", "Dir::Etc::preferencesparts": "/dev/null",
        "Acquire::Languages": "none", "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
        "APT::Default-Release": suite, "APT::Keep-Downloaded-Packages": "true",
    }  # fmt: skip
    argv = ["apt-get", *_quiet(), *(f"-o{key}={value}" for key, value in options.items())]
    tool.run([*argv, "update"])
    tool.run([*argv, "install", "--download-only", "--yes", "--no-install-recommends", *packages])
    return sorted((into / "archives").glob("*.deb"))


def unpack(tool: Tool, debs: Sequence[Path], into: Path) -> None:
    for deb in debs:
        tool.run(["dpkg-deb", "--extract", str(deb), str(into)])


def mirror(tool: Tool) -> str:
    """The address of Debian's archive, as this machine's own sources have it, in either of their formats."""
    names = {require_debian(tool.what), *_ALIASES}
    try:
        lines = tool.run(
            ["apt-get", "indextargets", "--format", "$(CREATED_BY) $(RELEASE) $(COMPONENT) $(REPO_URI)"],
            quiet=True,
        ).splitlines()  # fmt: skip
    except DiapauseError as error:
        why = f"apt cannot read its sources: {error.why}"
        raise FailedPrecondition("apt-sources", tool.what, why) from error
    for line in lines:
        kind, release, component, address = line.split(maxsplit=3)
        if kind == "Packages" and component == "main" and release in names:
            return address
    raise FailedPrecondition(
        "apt-sources", tool.what, "this machine's apt sources name no mirror of Debian's main archive",
        "add one to /etc/apt/sources.list.d and run apt-get update",
    )  # fmt: skip


def _quiet() -> list[str]:
    """Plain output; the sandbox user of apt could not read a cache in root's home."""
    options = ["-q", "-oAPT::Cmd::Disable-Script-Warning=true", "-oAcquire::Retries=3"]
    return [*options, "-oAPT::Sandbox::User=root"] if os.geteuid() == 0 else options
