import os
from pathlib import Path

import pytest

from diapause.runtime.oci import args


@pytest.mark.parametrize(
    ("words", "verb", "container", "flags"),
    [
        ("state c1", "state", "c1", {}),
        ("create --bundle /b --pid-file /p c1", "create", "c1", {"bundle": "/b", "pid-file": "/p"}),
        ("create c1 -b /b", "create", "c1", {"bundle": "/b"}),
        ("run -b=/b -d --no-pivot c1", "run", "c1", {"bundle": "/b", "detach": "true", "no-pivot": "true"}),
        ("run --preserve-fds 2 c1", "run", "c1", {"preserve-fds": "2"}),
        ("create --of-tomorrow c1", "create", "c1", {"of-tomorrow": "true"}),
        ("create --of-tomorrow x c1", "create", "c1", {"of-tomorrow": "true"}),
        ("create --of-tomorrow=x c1", "create", "c1", {"of-tomorrow": "x"}),
        ("create -- c1", "create", "c1", {}),
        ("exec --process /p --detach c1", "exec", "c1", {"process": "/p", "detach": "true"}),
        ("exec c1 ls --bundle /x", "exec", "c1", {}),
        ("ps --format json c1 -ef", "ps", "c1", {"format": "json"}),
        ("kill --all c1 9", "kill", "c1", {"all": "true"}),
        ("delete --force c1", "delete", "c1", {"force": "true"}),
        ("update --resources - c1", "update", "c1", {"resources": "-"}),
        ("update --resources=- c1", "update", "c1", {"resources": "-"}),
        ("checkpoint --image-path /i --work-path=/w --leave-running --status-fd 3 c1", "checkpoint", "c1",
         {"image-path": "/i", "work-path": "/w", "leave-running": "true", "status-fd": "3"}),
        ("checkpoint --manage-cgroups-mode ignore --empty-ns network c1", "checkpoint", "c1",
         {"manage-cgroups-mode": "ignore", "empty-ns": "network"}),
        ("restore --image-path /i --work-path /w --detach --pid-file /p -no-subreaper --bundle /b c1",
         "restore", "c1", {"image-path": "/i", "work-path": "/w", "detach": "true", "pid-file": "/p",
                           "no-subreaper": "true", "bundle": "/b"}),
        ("bogus x", "bogus", "x", {}),
    ],
)  # fmt: skip
def test_verb_flags_and_id(words: str, verb: str, container: str, flags: dict[str, str]) -> None:
    command = args.parse(words.split())

    assert (command.verb, command.id, command.flags) == (verb, container, flags)
    assert command.argv == words.split()


@pytest.mark.parametrize(
    "globals_",
    [
        ["--root", "/r", "--log", "/l", "--log-format", "json"],
        ["-root=/r", "-log=/l", "-log-format=json"],
        [
            "--debug",
            "--root=/r/x/..",
            "--systemd-cgroup",
            "--rootless",
            "auto",
            "--log",
            "/l",
            "--log-format=json",
        ],
        ["--criu", "/c", "--root", "/r", "--log", "/l", "--of-tomorrow", "--log-format", "json"],
        ["--log-level", "debug", "--root", "/r", "--log", "/l", "--log-format", "json"],
    ],
)
def test_globals_come_before_the_verb(globals_: list[str]) -> None:
    command = args.parse([*globals_, "state", "c1"])

    assert (command.root, command.log, command.log_format) == ("/r", "/l", "json")
    assert (command.verb, command.global_args, command.verb_args) == ("state", globals_, ["c1"])


@pytest.mark.parametrize(
    "words",
    [
        [], ["--version"], ["-h"], ["--help", "create"], ["checkpoint", "--help"], ["--root"], ["create"],
        ["restore", "--lsm-mount-context"], ["checkpoint", "c1", "--image-path"], ["create", ""],
        ["create", "."], ["create", ".."], ["create", "../c1"], ["create", "/c1"], ["checkpoint", "a/b"],
    ],
)  # fmt: skip
def test_help_and_what_no_runtime_accepts_are_left_to_runc(words: list[str]) -> None:
    command = args.parse(words)

    assert command.is_for_runc_alone
    assert command.argv == words


@pytest.mark.parametrize("name", ["c1", "a.b", "...", "a b", "\udcff", "-"])
def test_any_other_id_is_one(name: str) -> None:
    command = args.parse(["create", "--bundle", "/b", name])
    assert not command.is_for_runc_alone
    assert command.id == name


def test_a_root_has_one_name(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "link").symlink_to("run")
    roots = [
        args.parse(["--root", f"{tmp_path}/{name}/runc", "state", "c1"]).root
        for name in ("run", "link", "link/../run")
    ]
    assert roots == [f"{tmp_path}/run/runc"] * 3


def test_the_default_root_is_that_of_runc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert args.parse(["state", "c1"]).root == "/run/runc"
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1000")
    assert args.parse(["state", "c1"]).root == "/run/user/1000/runc"


@pytest.mark.parametrize(
    ("value", "truth"), [("--d", True), ("--d=true", True), ("--d=1", True), ("--d=false", False)]
)
def test_a_switch_reads_what_go_reads(value: str, truth: bool) -> None:
    assert args.parse(["run", value.replace("--d", "--detach"), "c1"]).switch("detach") is truth


def test_paths_are_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: os.PathLike[str]) -> None:
    monkeypatch.chdir(tmp_path)
    command = args.parse(["--log", "l", "checkpoint", "c1"])
    assert command.path("image-path", "checkpoint") == f"{tmp_path}/checkpoint"
    assert command.path("work-path") == ""
    assert command.log == f"{tmp_path}/l"
