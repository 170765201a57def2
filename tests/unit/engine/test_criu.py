"""CRIU's version, its configuration and what its log says."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from diapause.runtime.engine import criu, logs, runc
from diapause.runtime.engine.request import CheckpointRequest, Settings
from diapause.runtime.errors import FailedPrecondition


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ("Version: 4.2.1\nGitID: v4.2.1\n", (4, 2, 1)),
        ("Version: 4.2\n", (4, 2)),
        ("Version: 3.17.1-2\n", (3, 17, 1)),
        ("Warn: odd\nVersion: 10.0.dev\n", (10, 0)),
        ("no version here", ()),
        ("", ()),
    ],
)
def test_versions_are_numbers(output: str, version: tuple[int, ...]) -> None:
    assert criu.parse_version(output)[1] == version


@pytest.mark.parametrize(
    ("output", "good"), [("4.2", True), ("4.2.1", True), ("5.0", True), ("4.1.9", False)]
)
def test_the_oldest_that_works_is_known(output: str, good: bool) -> None:
    if good:
        assert criu.check_version(f"Version: {output}", "/bin/criu", "checkpoint c1") == output
    else:
        with pytest.raises(FailedPrecondition, match=r"needed is 4\.2"):
            criu.check_version(f"Version: {output}", "/bin/criu", "checkpoint c1")


def test_the_cause_is_reported_and_not_its_consequences(tmp_path: Path) -> None:
    log = tmp_path / "dump.log"
    log.write_text(
        "(00.01) Error (criu/util.c:1534): rlimit: Can't setup RLIMIT_NOFILE for self: no\n"
        "(00.02) Warn  (criu/x.c:1): odd\n"
        "(00.03) Error (criu/files-ext.c:98): Can't dump file 3 of that type [20666] (chr 10:229)\n"
        "(00.04) Error (criu/cr-dump.c:2098): Dumping FAILED.\n"
    )

    assert criu.last_error(str(log)) == "Can't dump file 3 of that type [20666] (chr 10:229)"
    assert criu.last_error(str(tmp_path / "none")) == ""


def request(tmp_path: Path, **settings: Any) -> CheckpointRequest:
    return CheckpointRequest(
        runc="/usr/bin/runc", global_args=["--root", "/r"], verb_args=["c1"], root="/r", id="c1",
        image_path=str(tmp_path), settings=Settings(**settings), state={},
    )  # fmt: skip


@pytest.fixture
def hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DIAPAUSE_NATIVE_DIR", str(tmp_path / "a folder"))
    path = tmp_path / "a folder" / "bin" / "diapause-hook"
    path.parent.mkdir(parents=True)
    path.write_text("")
    return path


def lines(folder: Path) -> list[str]:
    return (folder / "criu.conf").read_text().splitlines()


def test_the_action_script_is_one_word_that_leads_to_the_hook(tmp_path: Path, hook: Path) -> None:
    criu.write_config(request(tmp_path), str(tmp_path), "checkpoint", env={"PATH": "/bin"})

    (script,) = [line for line in lines(tmp_path) if line.startswith("action-script")]
    assert len(script.split(" ")) == 2
    assert os.path.realpath(script.split(" ")[1]) == str(hook)


def test_the_link_follows_an_upgrade(tmp_path: Path, hook: Path) -> None:
    (tmp_path / "commit").symlink_to("/an/older/hook")

    criu.write_config(request(tmp_path), str(tmp_path), "checkpoint", env={"PATH": "/bin"})

    assert os.path.realpath(tmp_path / "commit") == str(hook)


def test_the_plugin_folder_is_empty(tmp_path: Path) -> None:
    criu.write_config(request(tmp_path), str(tmp_path), "restore", env={"PATH": "/bin"})

    assert f"libdir {tmp_path}/criu-plugins" in lines(tmp_path)
    assert os.listdir(tmp_path / "criu-plugins") == []


@pytest.mark.parametrize(
    ("setting", "there", "line"),
    [
        ("auto", False, "network-lock skip"),
        ("auto", True, None),
        ("nftables", False, "network-lock nftables"),
        ("skip", True, "network-lock skip"),
    ],
)
def test_the_network_is_locked_with_what_the_host_has(
    tmp_path: Path, setting: str, there: bool, line: str | None
) -> None:
    if there:
        (tmp_path / "iptables-restore").write_text("")
        (tmp_path / "iptables-restore").chmod(0o755)

    criu.write_config(
        request(tmp_path, network_lock=setting), str(tmp_path), "restore", env={"PATH": str(tmp_path)}
    )

    assert [found for found in lines(tmp_path) if found.startswith("network-lock")] == (
        [line] if line else []
    )


def test_the_file_it_stands_in_for_comes_first(tmp_path: Path) -> None:
    (tmp_path / "mine.conf").write_text("timeout 60")
    asked = request(tmp_path)
    asked = CheckpointRequest(
        **{
            name: getattr(asked, name)
            for name in ("runc", "global_args", "verb_args", "root", "id", "image_path")
        },
        state={"criu_config": str(tmp_path / "mine.conf")},
    )

    criu.write_config(asked, str(tmp_path), "restore", env={"PATH": "/bin"})

    assert lines(tmp_path)[0] == "timeout 60"
    assert "leave-stopped" in lines(tmp_path)


def test_the_configured_criu_is_first_in_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/bin")
    (tmp_path / "criu").write_text("")

    for path in (tmp_path, tmp_path / "criu"):
        env = runc.environment(Settings(criu_path=str(path)), "checkpoint c1")
        assert env["PATH"] == f"{tmp_path}:/bin"
    with pytest.raises(FailedPrecondition, match="a program called criu"):
        runc.environment(Settings(criu_path="/opt/criu-4.2.bin"), "checkpoint c1")


def test_saved_logs_are_private_and_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "KEPT", 2)
    monkeypatch.setattr(os, "getpid", iter(range(100, 200)).__next__)
    (tmp_path / "dump.log").write_text("secret")
    trace = tmp_path / "state" / "logs" / "trace-1.txt"
    trace.parent.mkdir(parents=True)
    trace.parent.chmod(0o700)
    trace.write_text("an older failure")

    kept = [logs.keep("c1", [str(tmp_path / "dump.log"), str(tmp_path / "none")]) for _ in range(4)]

    assert Path(kept[-1]).read_text() == "secret"
    assert Path(kept[-1]).stat().st_mode & 0o777 == 0o600
    assert Path(kept[-1]).parent.stat().st_mode & 0o777 == 0o700
    assert len(os.listdir(tmp_path / "state" / "logs")) == 2
    assert logs.keep("c1", [str(tmp_path / "none")]) == ""
