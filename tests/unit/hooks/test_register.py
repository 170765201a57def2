"""createRuntime: what it records, and everything it refuses."""

import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from diapause.hooks import main as hook
from diapause.runtime.container import Container
from diapause.runtime.oci import expected


class Prepared:
    """A container whose create verb has run."""

    def __init__(self, host: Path, libcuda: Path) -> None:
        from diapause.runtime.oci import digest

        self.bundle = host / "bundle"
        self.bundle.mkdir()
        (self.bundle / "config.json").write_text("{}", encoding="utf-8")
        self.libcuda = libcuda.resolve()
        self.library = host / "library"
        self.library.write_bytes(b"library")
        self.container = Container("/r", "c1")
        self.container.make_directory()
        self.state: dict[str, Any] = {
            "version": 1, "root": "/r", "id": "c1", "bundle": str(self.bundle), "engine": "intercept",
            "driver": {"version": "1", "libcuda": {"path": str(self.libcuda), "size": 18,
                                                   "digest": digest.of_file(str(self.libcuda)).digest}},
            "library": {"path": str(self.library), "digest": digest.of_file(str(self.library)).digest},
            "devices": [{"path": "/dev/nvidia0", "major": 1, "minor": 3}],
            "pid": None, "start_time": None,
        }  # fmt: skip
        self.told = {"id": "c1", "bundle": str(self.bundle), "pid": os.getpid(), "status": "creating"}
        self.store()

    def store(self) -> None:
        self.container.store_state(self.state)

    def expect(self) -> None:
        """As the verb does, once the files are old enough to be known again."""
        deadline = time.monotonic() + 10
        file = Path(self.container.directory, expected.NAME)
        while not file.exists() and time.monotonic() < deadline:
            expected.write(self.container.directory, self.state)
        assert file.exists()


@pytest.fixture
def prepared(host: Path, libcuda: Path) -> Prepared:
    return Prepared(host, libcuda)


def run(monkeypatch: pytest.MonkeyPatch, stdin: bytes, key: str) -> int:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
    return hook.main("", ["register", "--key", key])


@pytest.mark.parametrize("status", ["creating", "stopped"])
def test_pid_and_start_time_are_recorded(
    monkeypatch: pytest.MonkeyPatch, prepared: Prepared, status: str
) -> None:
    told = json.dumps({**prepared.told, "status": status, "annotations": {"a": "b"}}).encode()

    assert run(monkeypatch, told, prepared.container.key) == 0

    start_time = int(Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19])
    assert prepared.container.load_state() == {**prepared.state, "pid": os.getpid(), "start_time": start_time}


def change_told(prepared: Prepared, **values: Any) -> None:
    prepared.told |= values


BREAKAGES: dict[str, Any] = {
    "hook-other-container": lambda p: change_told(p, id="c2"),
    "hook-other-container ": lambda p: change_told(p, bundle="/"),
    "hook-bad-state": lambda p: change_told(p, pid=0),
    "hook-bad-state ": lambda p: change_told(p, pid="1"),
    "hook-no-process": lambda p: change_told(p, pid=2**22 + 1),
    "driver-changed": lambda p: p.libcuda.write_bytes(b"another driver...."),
    "driver-changed ": lambda p: p.libcuda.unlink(),
    "library-changed": lambda p: p.library.write_bytes(b"LIBRARY"),
    "device-missing": lambda p: p.state["devices"].append({"path": "/dev/nvidia9", "major": 509, "minor": 0}),
    "hook-untrusted-bundle": lambda p: (p.bundle / "config.json").chmod(0o666),
    "hook-bundle-missing": lambda p: (p.bundle / "config.json").unlink(),
    "hook-not-prepared": lambda p: p.container.forget(),
}


@pytest.mark.parametrize("code", BREAKAGES)
def test_what_does_not_fit_is_refused(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], prepared: Prepared, code: str
) -> None:
    BREAKAGES[code](prepared)
    if code != "hook-not-prepared":
        prepared.store()

    assert run(monkeypatch, json.dumps(prepared.told).encode(), prepared.container.key) == 1

    out, err = capfd.readouterr()
    assert out == ""
    assert err.rstrip().endswith(f"[{code.strip()}]")
    state = prepared.container.load_state()
    if code.startswith(("driver", "library", "device", "hook-not")):
        assert state is None  # nothing stays behind of a container that will not come to be
    else:
        assert state is not None
        assert state["pid"] is None


def test_while_a_restore_holds_the_container_its_state_stays(
    monkeypatch: pytest.MonkeyPatch, prepared: Prepared
) -> None:
    prepared.library.write_bytes(b"LIBRARY")
    with prepared.container.lock():
        assert run(monkeypatch, json.dumps(prepared.told).encode(), prepared.container.key) == 1
    assert prepared.container.load_state() == prepared.state


def test_a_container_without_the_library_has_none_to_verify(
    monkeypatch: pytest.MonkeyPatch, prepared: Prepared
) -> None:
    prepared.state["library"] = None
    prepared.store()
    assert run(monkeypatch, json.dumps(prepared.told).encode(), prepared.container.key) == 0


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(stdin=st.binary() | st.text().map(str.encode) | st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["id", "bundle", "pid", "x"]), inner),
).map(lambda value: json.dumps(value).encode()))  # fmt: skip
def test_garbage_on_stdin_is_a_clear_error(
    capfd: pytest.CaptureFixture[str], prepared: Prepared, stdin: bytes
) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        assert run(monkeypatch, stdin, prepared.container.key) == 1
    (line,) = capfd.readouterr().err.splitlines()
    assert "[hook-" in line


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"root": 1, "id": 2}', '{"root": "/r", "id": "c2"}'])
def test_a_damaged_state_is_refused(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], prepared: Prepared, text: str
) -> None:
    Path(prepared.container.directory, "state.json").write_text(text, encoding="utf-8")
    assert run(monkeypatch, json.dumps(prepared.told).encode(), prepared.container.key) == 1
    assert "[state-malformed]" in capfd.readouterr().err


def test_arguments_are_fixed(capfd: pytest.CaptureFixture[str]) -> None:
    assert hook.main("", ["register", "--key"]) == 1
    assert "[hook-usage]" in capfd.readouterr().err


class TestWithoutPython:
    """The C half, which registers what it finds as it was prepared, and leaves the rest to Python."""

    @pytest.fixture
    def prepared(self, host: Path, libcuda: Path) -> Prepared:
        prepared = Prepared(host, libcuda)
        prepared.expect()
        return prepared

    def run(
        self, installation: Any, prepared: Prepared, stdin: bytes
    ) -> "subprocess.CompletedProcess[bytes]":
        return subprocess.run(
            [str(installation.bin / "diapause-hook"), "register", "--key", prepared.container.key],
            env=installation.env, input=stdin, capture_output=True, timeout=30, check=False,
        )  # fmt: skip

    def start_time(self) -> int:
        return int(Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19])

    @pytest.mark.parametrize(
        "told",
        [
            {},
            {"annotations": {"id": "c2", "a": '"}, \\ {"', "b": [1, -2.5e3, True, None, {}, []]}, "x": "é\n"},
        ],
    )
    @pytest.mark.parametrize("indent", [None, 1])
    def test_it_registers(
        self, installation: Any, prepared: Prepared, told: dict[str, Any], indent: int | None
    ) -> None:
        installation.script.unlink()

        result = self.run(
            installation, prepared, json.dumps({**told, **prepared.told}, indent=indent).encode()
        )

        assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")
        recorded = {**prepared.state, "pid": os.getpid(), "start_time": self.start_time()}
        assert prepared.container.load_state() == recorded
        assert not [name for name in os.listdir(prepared.container.directory) if name.endswith(".tmp")]

    @pytest.mark.parametrize("code", BREAKAGES)
    def test_what_does_not_fit_is_left_to_python(
        self, installation: Any, prepared: Prepared, code: str
    ) -> None:
        BREAKAGES[code](prepared)
        if code == "device-missing":
            Path(prepared.container.directory, expected.NAME).unlink()
            prepared.expect()
            prepared.store()

        result = self.run(installation, prepared, json.dumps(prepared.told).encode())

        assert result.returncode == 1
        assert result.stderr.decode().rstrip().endswith(f"[{code.strip()}]")
        state = prepared.container.load_state()
        assert state is None or state["pid"] is None

    @pytest.mark.parametrize(
        "change",
        [
            lambda text: text.replace("major 1\n", "major 509\n"),
            lambda text: text.replace("end\n", ""),
            lambda text: text.replace("expected 1", "expected 2"),
            lambda text: text.replace("major 1\n", "major 1\nmore\n"),
            lambda text: text.replace("major 1\n", "major\n"),
            lambda text: text.replace("file ", "file 1"),
            lambda text: "",
        ],
    )
    def test_another_expectation_is_left_to_python(
        self, installation: Any, prepared: Prepared, change: Any
    ) -> None:
        path = Path(prepared.container.directory, expected.NAME)
        before = path.read_text(encoding="utf-8")
        path.write_text(change(before), encoding="utf-8")
        assert path.read_text(encoding="utf-8") != before

        stdin = json.dumps(prepared.told).encode()
        installation.script.rename(installation.script.with_name("away"))
        assert b"[python-missing]" in self.run(installation, prepared, stdin).stderr
        installation.script.with_name("away").rename(installation.script)

        assert self.run(installation, prepared, stdin).returncode == 0
        state = prepared.container.load_state()
        assert state is not None
        assert state["pid"] == os.getpid()

    @pytest.mark.parametrize(
        "stdin",
        [
            b"", b"{}", b"[]", b"null", b"{", b'{"id":"c1"}', b'{"id":"c1","pid":2}', b'{"id',
            b'{"id":"c1"', b"\0", b"{" * 100000, b'{"a":' * 100, b'{"id":"c1","bundle":"/","pid":2}x',
            b'"' + b"a" * (1 << 21),
        ],
    )  # fmt: skip
    def test_garbage_is_refused(self, installation: Any, prepared: Prepared, stdin: bytes) -> None:
        result = self.run(installation, prepared, stdin)
        assert result.returncode == 1
        assert b"[hook-" in result.stderr
        assert result.stderr.count(b"\n") == 1

    @pytest.mark.parametrize(
        "more", ['"id":"c2"', '"\\u0069d":"c2"', '"bundle":"/x"', '"pid":1', '"pid":1.5']
    )
    def test_the_last_of_two_values_counts(self, installation: Any, prepared: Prepared, more: str) -> None:
        stdin = json.dumps(prepared.told)[:-1] + f",{more}}}"
        assert self.run(installation, prepared, stdin.encode()).returncode == 1


@pytest.mark.parametrize("wrong", ["young", "changed", "newline"])
def test_what_needs_a_closer_look_is_not_expected(prepared: Prepared, wrong: str) -> None:
    prepared.expect()
    if wrong == "young":
        os.utime(prepared.library)  # its ctime is now
    elif wrong == "changed":
        prepared.state["library"]["digest"] = "sha256:0"
    else:
        prepared.state["bundle"] += "\n"
    expected.write(prepared.container.directory, prepared.state)
    assert not Path(prepared.container.directory, expected.NAME).exists()
