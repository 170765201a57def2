"""The C front, run for real with a runc that records how it was called."""

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FRONT = Path(__file__).parents[3] / "native" / "front"

VERBS = [
    ["--version"],
    ["-v"],
    ["--help"],
    [],
    ["features"],
    ["bogus", "x"],
    ["--root", "/r", "state", "c1"],
    ["-root=/r", "--log", "/dev/null", "-log-format", "json", "state", "c1"],
    ["--debug", "--systemd-cgroup", "--rootless=auto", "list", "-f", "json"],
    ["--criu", "create", "kill", "--all", "c1", "9"],
    ["--unknown-of-tomorrow", "pause", "c1"],
    ["--log-level", "create", "pause", "c1"],
    ["exec", "--process", "/p.json", "--detach", "--pid-file", "/pid", "c1"],
    ["exec", "c1", "checkpoint", "--help"],
    ["delete", "--force", "c1"],
    ["ps", "--format", "json", "c1", "-ef"],
    ["update", "--resources=-", "c1"],
    ["events", "--stats", "c1"],
    ["spec", "--bundle", "/nowhere"],
    ["create", "--bundle", "/nowhere", "c1"],
    ["create", "c1", "-b", "/nowhere"],
    ["run", "--no-pivot", "-no-new-keyring", "-b=/nowhere", "--preserve-fds", "2", "c1"],
    ["checkpoint", "--help"],
    ["restore", "--lsm-mount-context"],
    ["restore", "-h"],
    ["checkpoint", "--image-path", "/nowhere", "--leave-running", "unmanaged"],
]


@pytest.mark.parametrize("argv", VERBS, ids=" ".join)
def test_runc_gets_every_word_as_it_came(installation: Any, argv: list[str]) -> None:
    result = installation.run(*argv)

    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert installation.seen["argv"] == argv


def test_status_and_output_are_those_of_runc(installation: Any) -> None:
    installation.env |= {"FAKE_RUNC_STATUS": "3", "FAKE_RUNC_STDOUT": "out", "FAKE_RUNC_STDERR": "err\n"}

    result = installation.run("state", "c1")

    assert (result.returncode, result.stdout, result.stderr) == (3, "out", "err\n")


@pytest.fixture
def managed(host: Path) -> None:
    """Some container is managed: a checkpoint goes through Python."""
    directory = host / "run" / "c" / "0123"
    directory.mkdir(parents=True)
    (directory / "state.json").write_text("{}", encoding="utf-8")


@pytest.mark.usefixtures("managed")
@pytest.mark.parametrize("verb", [["state", "c1"], ["checkpoint", "c1"]], ids=["direct", "through-python"])
def test_runc_inherits_what_the_caller_set_up(installation: Any, verb: list[str], tmp_path: Path) -> None:
    pipe, other = os.pipe()
    installation.env |= {"LISTEN_FDS": "1", "NOTIFY_SOCKET": "", "ODD": "a\nb"}
    for name in ("LANG", "LC_ALL", "LC_CTYPE"):  # Python sets one for itself
        installation.env.pop(name, None)

    process = subprocess.Popen(
        [sys.executable, "-c", DEATH_SIGNAL, str(installation.bin / "diapause-runc"), *verb],
        env=installation.env, pass_fds=(pipe,), cwd=tmp_path, umask=0o037,
    )  # fmt: skip
    assert process.wait(30) == 0

    seen = installation.seen
    assert seen["env"] == {**installation.env, "DIAPAUSE_FRONT_PID": str(process.pid)}
    assert (seen["pid"], seen["cwd"], seen["umask"]) == (process.pid, str(tmp_path), 0o037)
    assert seen["fds"] == [0, 1, 2, pipe]
    assert seen["death_signal"] == signal.SIGKILL
    os.close(pipe)
    os.close(other)


@pytest.mark.usefixtures("managed")
@pytest.mark.parametrize(
    "verb", ["state", "checkpoint", "resume"], ids=["direct", "through-python", "no package"]
)
def test_no_signal_is_ignored_that_was_not(installation: Any, host: Path, verb: str) -> None:
    if verb == "resume":  # Python starts, finds no package, and comes back
        break_python(installation, "no package")
        (host / "run" / "c" / "0123" / "journal").write_text("", encoding="utf-8")
    installation.runc.write_text("#!/bin/sh\ngrep -E 'Sig(Ign|Blk)' /proc/self/status\n", encoding="utf-8")
    command = ["/bin/sh", "-c", f'exec "$0" {verb} c1', str(installation.bin / "diapause-runc")]
    plain = ["/bin/sh", "-c", "exec grep -E 'Sig(Ign|Blk)' /proc/self/status"]

    ours, theirs = (
        subprocess.run(
            one, env=installation.env, capture_output=True, text=True, check=True, timeout=30
        ).stdout
        for one in (command, plain)
    )

    assert ours == theirs
    assert "SigIgn" in ours


DEATH_SIGNAL = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
os.environ.pop("LC_CTYPE", None)
os.execv(sys.argv[1], sys.argv[1:])
"""


def python_would_run(installation: Any, host: Path) -> Path:
    """A file that is there once Python was started: by an interpreter of ours."""
    started = host / "started"
    interpreter = host / "interpreter"
    interpreter.write_text(f'#!/bin/sh\n: >"{started}"\nexit 9\n', encoding="utf-8")
    interpreter.chmod(0o755)
    installation.script.write_text(f"#!{interpreter}\n", encoding="utf-8")
    return started


@pytest.mark.parametrize("verb", ["create", "run", "restore", "checkpoint"])
def test_a_container_without_a_gpu_never_starts_python(
    installation: Any, bundle: Any, host: Path, verb: str
) -> None:
    started = python_would_run(installation, host)
    before = bundle.config.read_bytes()

    result = installation.run(verb, *([] if verb == "checkpoint" else ["--bundle", str(bundle.path)]), "c1")

    assert result.returncode == 0
    assert not started.exists()
    assert bundle.config.read_bytes() == before
    assert sorted(entry.name for entry in bundle.path.iterdir()) == ["config.json", "rootfs"]


@pytest.mark.parametrize("verb", ["create", "run", "restore"])
@pytest.mark.parametrize("flag", [["--bundle="], ["-b", ""], []])
def test_an_empty_bundle_is_the_working_directory(
    installation: Any, gpu_bundle: Any, host: Path, verb: str, flag: list[str]
) -> None:
    started = python_would_run(installation, host)
    assert installation.run(verb, *flag, "c1", cwd=gpu_bundle.path).returncode == 9
    assert started.exists()


@pytest.mark.parametrize("flag", [["--image-path", "image"], ["--image-path="], []])
@pytest.mark.parametrize("kind", ["file", "link that leads nowhere"])
def test_a_manifest_sends_a_restore_through_python(
    installation: Any, bundle: Any, host: Path, flag: list[str], kind: str
) -> None:
    started = python_would_run(installation, host)
    for name in ("image", "checkpoint"):
        (host / name).mkdir()
        if kind == "file":
            (host / name / "diapause.json").write_text("{}", encoding="utf-8")
        else:
            (host / name / "diapause.json").symlink_to("nowhere")
    assert installation.run("restore", *flag, "-b", str(bundle.path), "c1", cwd=host).returncode == 9
    assert started.exists()


@pytest.mark.usefixtures("managed")
@pytest.mark.parametrize("locale", ["C", "C.UTF-8", "", "de_DE.ISO-8859-1"])
def test_words_of_any_bytes_come_through_python_as_they_were(
    installation: Any, host: Path, locale: str
) -> None:
    installation.runc.write_text('#!/bin/sh\nprintf "%s|" "$@"\n', encoding="utf-8")
    words = [b"--root", b"/r\xff\xe9", b"checkpoint", b"--image-path", b"\xc3\xa4\x80", b"c\xff"]

    result = subprocess.run(
        [str(installation.bin / "diapause-runc").encode(), *words],
        env={**installation.env, "LC_ALL": locale}, capture_output=True, timeout=30, check=False,
    )  # fmt: skip

    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout == b"".join(word + b"|" for word in words)


def test_without_home_and_path_runc_is_found_where_it_is_installed(installation: Any) -> None:
    command = [str(installation.bin / "diapause-runc"), "state", "c1"]
    config = {"DIAPAUSE_RUNTIME_RUNC": "no-such-runtime"}
    result = subprocess.run(command, env=config, capture_output=True, text=True, timeout=30, check=False)
    assert result.returncode == 1
    assert "not found in PATH, /usr/bin or /usr/sbin, and no" in result.stderr
    config = {"DIAPAUSE_RUNTIME_RUNC": "true"}
    assert subprocess.run(command, env=config, timeout=30, check=False).returncode == 0


@pytest.mark.parametrize("broken", ["no script", "no interpreter", "no package"])
def test_without_python_a_managed_create_is_refused(installation: Any, gpu_bundle: Any, broken: str) -> None:
    break_python(installation, broken)
    argv = [
        "--log",
        str(installation.log),
        "--log-format",
        "json",
        "create",
        "-b",
        str(gpu_bundle.path),
        "c1",
    ]

    result = installation.run(*argv)

    assert result.returncode == 1
    assert "the Python part of diapause is missing" in result.stderr.splitlines()[0]
    assert installation.errors == [result.stderr.strip()]
    assert not installation.record.exists()


@pytest.mark.parametrize("broken", ["no script", "no interpreter", "no package"])
@pytest.mark.parametrize("verb", ["checkpoint", "restore"])
def test_without_python_an_unmanaged_container_is_left_to_runc(
    installation: Any, bundle: Any, broken: str, verb: str
) -> None:
    break_python(installation, broken)
    argv = [
        verb,
        "--image-path",
        "/nowhere",
        *(["--bundle", str(bundle.path)] if verb == "restore" else []),
        "c1",
    ]

    result = installation.run(*argv)

    assert (result.returncode, result.stderr) == (0, "")
    assert installation.seen["argv"] == argv


def break_python(installation: Any, how: str) -> None:
    if how == "no script":
        installation.script.unlink()
    elif how == "no interpreter":
        installation.script.write_text("#!/no/such/python\n", encoding="utf-8")
    else:
        installation.script.write_text("#!/usr/bin/python3\n", encoding="utf-8")
        probe = ["/usr/bin/python3", "-I", "-c", "import diapause.runtime.config"]
        if (
            not Path("/usr/bin/python3").exists()
            or subprocess.run(probe, capture_output=True, check=False).returncode == 0
        ):
            pytest.skip("no interpreter without the package")


def test_an_interpreter_with_a_long_path_is_found_behind_a_shell_script(
    installation: Any, bundle: Any
) -> None:
    installation.script.write_text(
        f"#!/bin/sh\n'''exec' \"{sys.executable}\" \"$0\" \"$@\"\n' '''\n", encoding="utf-8"
    )
    bundle.config.write_text('{"annotations": {"diapause.dev/gpu": "maybe"}}', encoding="utf-8")
    argv = ["--log", str(installation.log), "--log-format", "json", "restore", "-b", str(bundle.path), "c1"]

    result = installation.run(*argv)

    assert result.returncode == 1
    assert "'maybe' is not one of intercept, driver, off" in result.stderr
    assert installation.errors == [result.stderr.strip()]


@pytest.mark.parametrize(("found", "site"), [("link", False), ("folder", False), ("elsewhere", True)])
def test_beside_its_interpreter_it_does_without_site(
    installation: Any, bundle: Any, host: Path, found: str, site: bool
) -> None:
    """The package in its folder, in that of an editable installation, or where `site` finds it."""
    (installation.bin / "python").symlink_to(os.path.realpath(sys.executable))
    (host / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).resolve().parent}\n", encoding="utf-8")
    installation.script.write_text(f"#!{installation.bin}/python\n", encoding="utf-8")
    package = Path(__file__).parents[3] / "build" / "editable"
    folder = host / "lib" / "python{}.{}".format(*sys.version_info) / "site-packages"
    folder.mkdir(parents=True)
    if found == "folder":
        (folder / "diapause").symlink_to(package / "diapause")
    else:
        name = "_diapause.pth" if found == "link" else "other.pth"
        (folder / name).write_text(f"{package}\n", encoding="utf-8")
    (folder / "mark.pth").write_text(f"import sys; open({str(host / 'site')!r}, 'w')\n", encoding="utf-8")
    bundle.config.write_text('{"annotations": {"diapause.dev/gpu": "maybe"}}', encoding="utf-8")

    result = installation.run("create", "-b", str(bundle.path), "c1")

    assert "'maybe' is not one of intercept, driver, off" in result.stderr
    assert (host / "site").exists() is site


def test_a_journal_sends_every_verb_of_its_container_through_recovery(installation: Any, host: Path) -> None:
    container = host / "run" / "c" / "0123"
    container.mkdir(parents=True)
    (container / "journal").write_text("", encoding="utf-8")
    break_python(installation, "no interpreter")

    assert installation.run("state", "c1").returncode == 0  # another container's: runc as ever
    assert installation.seen["argv"] == ["state", "c1"]


@pytest.mark.parametrize("verb", ["resume", "delete"])
def test_a_suspended_container_sends_what_concerns_it_to_python(
    installation: Any, host: Path, verb: str
) -> None:
    break_python(installation, "no package")
    assert installation.run(verb, "c1").returncode == 0
    assert installation.seen["argv"] == [verb, "c1"]
    container = host / "run" / "c" / "0123"
    container.mkdir(parents=True)
    (container / "suspended").write_text("", encoding="utf-8")

    done = installation.run(verb, "c1")

    if verb == "resume":  # runc would let it run without its memory
        assert "[python-missing]" in done.stderr
    else:
        assert done.returncode == 0


def test_suspend_is_a_verb_of_ours(installation: Any) -> None:
    break_python(installation, "no package")

    assert "[python-missing]" in installation.run("suspend", "c1").stderr


class TestLowLevelRuntime:
    def test_the_configuration_names_it(self, installation: Any, host: Path) -> None:
        other = host / "other runc"
        other.write_bytes(installation.runc.read_bytes())
        other.chmod(0o755)
        config = host / "config.toml"
        config.write_text(
            f'[criu]\nrunc = "/no"\n [runtime] # here\nrunc="{other}"  # this one\n', encoding="utf-8"
        )
        installation.env |= {"DIAPAUSE_CONFIG": str(config), "PATH": "/usr/bin"}

        assert installation.run("state", "c1").returncode == 0
        assert installation.seen["argv"] == ["state", "c1"]

    def test_the_environment_overrides_the_configuration(self, installation: Any, host: Path) -> None:
        config = host / "config.toml"
        config.write_text("[runtime]\nrunc = '/no/such'\n", encoding="utf-8")
        installation.env |= {"DIAPAUSE_CONFIG": str(config), "DIAPAUSE_RUNTIME_RUNC": str(installation.runc)}

        assert installation.run("state", "c1").returncode == 0

    def test_a_name_is_looked_up_in_path(self, installation: Any) -> None:
        installation.runc.rename(installation.runc.with_name("crun"))
        installation.env |= {"DIAPAUSE_RUNTIME_RUNC": "crun"}

        assert installation.run("state", "c1").returncode == 0

    def test_it_is_never_ourselves_when_installed_as_runc(self, installation: Any) -> None:
        (installation.bin / "runc").symlink_to("diapause-runc")
        installation.env["PATH"] = f"{installation.bin}:{installation.env['PATH']}"

        assert installation.run("state", "c1").returncode == 0
        assert installation.seen["argv"] == ["state", "c1"]

    @pytest.mark.parametrize("configured", ["diapause-runc", "link", "script"])
    def test_a_loop_is_an_error(self, installation: Any, configured: str) -> None:
        front = installation.bin / "diapause-runc"
        (installation.bin / "link").symlink_to(front)
        script = installation.bin / "script"
        script.write_text(f'#!/bin/sh\nexec {front} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
        installation.env["DIAPAUSE_RUNTIME_RUNC"] = str(installation.bin / configured)

        result = installation.run("--log", str(installation.log), "--log-format=json", "state", "c1")

        assert result.returncode == 1
        assert "[runtime-loop]" in result.stderr
        assert installation.errors == [result.stderr.strip()]

    @pytest.mark.parametrize("configured", ["/no/such/runc", "no-such-runtime", "relative/runc"])
    def test_one_that_is_not_there_is_an_error(self, installation: Any, configured: str) -> None:
        installation.env["DIAPAUSE_RUNTIME_RUNC"] = configured

        result = installation.run("--log", str(installation.log), "--log-format=json", "state", "c1")

        assert result.returncode == 1
        assert configured in result.stderr
        assert "[runtime-not-found]" in result.stderr
        assert installation.errors == [result.stderr.strip()]


def test_the_text_log_has_one_record(installation: Any) -> None:
    installation.env["DIAPAUSE_RUNTIME_RUNC"] = "/no/such/runc"

    installation.run("--log", str(installation.log), "state", "c1")

    assert installation.log.read_text(encoding="utf-8").count("level=error msg=") == 1
    assert stat.S_IMODE(installation.log.stat().st_mode) == 0o644


def test_a_message_with_quotes_is_json(installation: Any) -> None:
    installation.env["DIAPAUSE_RUNTIME_RUNC"] = '/no/such/a"b\\c\td'

    installation.run("--log", str(installation.log), "--log-format", "json", "state", "c1")

    assert json.loads(installation.log.read_text(encoding="utf-8"))["msg"].startswith(
        'low-level runtime /no/such/a"b\\c\td'
    )


def test_the_front_stays_small_enough_to_be_read_at_once() -> None:
    names = ("main", "args", "config", "scan", "runtime", "python", "fail")
    lines = [line.strip() for name in names for line in (FRONT / f"{name}.c").read_text().splitlines()]
    code = [line for line in lines if line and not line.startswith(("/*", "*", "//", "#include"))]
    assert len(code) <= 300
