"""diapause-hook, the C program: cleanup, commit, and the way to register."""

import fcntl
import os
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

KEY = "0123456789abcdef" * 2


def hook(installation: Any, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(installation.bin / "diapause-hook"), *words],
        env={**installation.env, **environ}, input="garbage", text=True, capture_output=True,
        timeout=30, check=False,
    )  # fmt: skip


@pytest.fixture
def directory(host: Path) -> Path:
    directory = host / "run" / "c" / KEY
    (directory / "criu-plugins").mkdir(parents=True)
    for name in ("state.json", "lock", "criu.conf"):
        (directory / name).write_text("", encoding="utf-8")
    return directory


class TestCleanup:
    def test_the_directory_goes(self, installation: Any, directory: Path) -> None:
        assert hook(installation, "cleanup", "--key", KEY).returncode == 0
        assert not directory.exists()
        assert directory.parent.exists()

    def test_a_held_lock_keeps_everything(self, installation: Any, directory: Path) -> None:
        with (directory / "lock").open() as lock:
            (directory / "lock").write_text("checkpoint 1\n", encoding="utf-8")
            fcntl.flock(lock, fcntl.LOCK_EX)
            result = hook(installation, "cleanup", "--key", KEY)

        assert (result.returncode, result.stderr) == (0, "")
        assert sorted(entry.name for entry in directory.iterdir()) == [
            "criu-plugins",
            "criu.conf",
            "lock",
            "state.json",
        ]

    def test_a_controller_that_only_looks_is_waited_for(self, installation: Any, directory: Path) -> None:
        lock = (directory / "lock").open()
        (directory / "lock").write_text("release 1\n", encoding="utf-8")
        fcntl.flock(lock, fcntl.LOCK_EX)
        threading.Timer(0.1, lock.close).start()

        assert hook(installation, "cleanup", "--key", KEY).returncode == 0

        assert not directory.exists()

    @pytest.mark.parametrize(("maker", "gone"), [("12-345", True), ("12-34", False), ("1-345", False)])
    def test_a_newer_container_of_the_id_keeps_its_directory(
        self, installation: Any, directory: Path, maker: str, gone: bool
    ) -> None:
        """runc frees an id before it runs poststop."""
        (directory / "maker").symlink_to(maker)
        result = hook(installation, "cleanup", "--maker", "12-345", "--key", KEY)
        assert (result.returncode, result.stderr) == (0, "")
        assert directory.exists() is not gone

    def test_what_cannot_be_locked_stays(self, installation: Any, directory: Path) -> None:
        (directory / "lock").unlink()
        (directory / "lock").symlink_to("state.json")
        assert hook(installation, "cleanup", "--key", KEY).returncode == 0
        assert directory.exists()

    def test_nothing_to_clean_up_is_no_failure(self, installation: Any) -> None:
        assert hook(installation, "cleanup", "--key", KEY).returncode == 0

    def test_links_are_removed_and_not_followed(self, installation: Any, directory: Path, host: Path) -> None:
        outside = host / "outside"
        outside.mkdir()
        (outside / "kept").write_text("", encoding="utf-8")
        (directory / "link").symlink_to(outside)

        hook(installation, "cleanup", "--key", KEY)

        assert (outside / "kept").exists()
        assert not directory.exists()

    @pytest.mark.parametrize("key", ["", "..", KEY[:-1], KEY + "0", KEY[:-1] + "/", KEY.upper()])
    def test_a_key_that_is_none_is_refused(self, installation: Any, directory: Path, key: str) -> None:
        result = hook(installation, "cleanup", "--key", key)
        assert result.returncode == 1
        assert "[hook-usage]" in result.stderr
        assert directory.exists()


class TestCommit:
    @pytest.mark.parametrize(
        ("answer", "status"), [(b"0\n", 0), (b"1\n", 1), (b"", 1), (b"0", 1), (b"x\n", 1)]
    )
    def test_the_engines_answer_is_the_status(
        self, installation: Any, directory: Path, monkeypatch: pytest.MonkeyPatch, answer: bytes, status: int
    ) -> None:
        monkeypatch.chdir(directory)  # a socket's path is short
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("commit.sock")
            listener.listen()
            heard: list[bytes] = []

            def serve() -> None:
                connection, _ = listener.accept()
                with connection:
                    heard.append(connection.recv(100))
                    connection.sendall(answer)

            thread = threading.Thread(target=serve)
            thread.start()
            short = f"/proc/{os.getpid()}/cwd/../.."  # the run directory
            result = hook(
                installation,
                "commit",
                "--key",
                KEY,
                CRTOOLS_SCRIPT_ACTION="post-dump",
                DIAPAUSE_RUN_DIR=short,
            )
            thread.join(10)

        assert (result.returncode, heard) == (status, [b"post-dump\n"])

    def test_the_socket_may_lie_deep(self, installation: Any, host: Path) -> None:
        """An address holds 107 bytes."""
        deep = host / ("d" * 100) / ("e" * 100)
        directory = deep / "c" / KEY
        directory.mkdir(parents=True)
        with socket.socket(socket.AF_UNIX) as listener:
            at = os.open(directory, os.O_PATH)
            listener.bind(f"/proc/self/fd/{at}/commit.sock")
            os.close(at)
            listener.listen()

            def serve() -> None:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(100)
                    connection.sendall(b"0\n")

            thread = threading.Thread(target=serve)
            thread.start()
            words = ("commit", "--key", KEY)
            result = hook(installation, *words, CRTOOLS_SCRIPT_ACTION="post-dump", DIAPAUSE_RUN_DIR=str(deep))
            if result.returncode:
                listener.shutdown(socket.SHUT_RDWR)  # nobody came: end the wait
            thread.join(10)

        assert (result.returncode, result.stderr) == (0, "")

    def test_a_link_in_the_containers_directory_needs_no_arguments(
        self, installation: Any, directory: Path
    ) -> None:
        """CRIU passes none to its action script."""
        link = directory / "commit"
        link.symlink_to(installation.bin / "diapause-hook")
        for action, status in (("pre-dump", 0), ("post-dump", 1)):
            environ = {**installation.env, "CRTOOLS_SCRIPT_ACTION": action}
            result = subprocess.run(
                [str(link)], env=environ, capture_output=True, text=True, timeout=30, check=False
            )
            assert result.returncode == status
        assert "[commit-no-engine]" in result.stderr

    @pytest.mark.parametrize("action", ["pre-dump", "post-restore", "network-lock", ""])
    def test_other_actions_pass(self, installation: Any, action: str) -> None:
        assert hook(installation, "commit", "--key", KEY, CRTOOLS_SCRIPT_ACTION=action).returncode == 0

    def test_an_engine_that_died_lets_no_dump_begin(self, installation: Any, directory: Path) -> None:
        with socket.socket(socket.AF_UNIX) as listener:
            at = os.open(directory, os.O_PATH)
            listener.bind(f"/proc/self/fd/{at}/commit.sock")
            os.close(at)
        result = hook(installation, "commit", "--key", KEY, CRTOOLS_SCRIPT_ACTION="pre-dump")
        assert result.returncode == 1
        assert "[commit-no-engine]" in result.stderr

    def test_without_an_engine_the_dump_fails(self, installation: Any, directory: Path) -> None:
        result = hook(
            installation, "commit", "--key", KEY, CRTOOLS_SCRIPT_ACTION="post-dump", DIAPAUSE_RUN_DIR="/run/x"
        )
        assert result.returncode == 1
        assert "[commit-no-engine]" in result.stderr


def test_register_with_garbage_on_stdin_is_a_clear_error(installation: Any) -> None:
    result = hook(installation, "register", "--key", KEY)
    assert (result.returncode, result.stdout) == (1, "")
    assert "stdin is not the state of a container" in result.stderr


def test_register_without_python_is_a_clear_error(installation: Any) -> None:
    installation.script.unlink()
    result = hook(installation, "register", "--key", KEY)
    assert result.returncode == 1
    assert "[python-missing]" in result.stderr


@pytest.mark.parametrize("words", [[], ["--help"], ["bogus", "--key", KEY], ["register"]])
def test_by_hand_it_says_who_starts_it(installation: Any, words: list[str]) -> None:
    result = hook(installation, *words)
    assert result.returncode == 1
    assert "[hook-usage]" in result.stderr
