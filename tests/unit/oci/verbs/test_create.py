"""create, run and the rest through the real front, with a runc that records."""

import errno
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from diapause.runtime.container import Container
from diapause.runtime.oci.call import Call
from diapause.runtime.oci.main import main


def run(installation: Any, host: Path, *words: str) -> Any:
    for name in ("RUN_DIR", "STATE_DIR", "NATIVE_DIR", "CDI_SPEC_DIRS"):
        assert str(host) in installation.env[f"DIAPAUSE_{name}"]
    root = ["--root", str(host / "root"), "--log", str(installation.log), "--log-format", "json"]
    return installation.run(*root, *words)


@pytest.fixture
def installation(native: Path, installation: Any) -> Any:
    installation.env["DIAPAUSE_NATIVE_DIR"] = str(native)
    return installation


@pytest.mark.parametrize("verb", ["create", "run"])
def test_a_managed_container_is_edited_and_goes_to_runc(
    installation: Any, gpu_bundle: Any, host: Path, verb: str
) -> None:
    words = [verb, "-b", str(gpu_bundle.path), "--pid-file", "/pid", "-no-pivot", "c1"]
    result = run(installation, host, *words)

    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert installation.seen["argv"][-len(words) :] == words
    container = Container(str(host / "root"), "c1")
    state = container.load_state()
    assert state is not None
    assert state["bundle"] == str(gpu_bundle.path)
    (entry,) = gpu_bundle.spec["hooks"]["createRuntime"]
    assert entry["path"] == str(installation.bin / "diapause-hook")
    assert entry["args"][-1] == container.key
    assert installation.errors == []


def test_the_bundle_may_be_the_working_directory(installation: Any, gpu_bundle: Any, host: Path) -> None:
    result = installation.run("--root", str(host / "root"), "create", "c1", cwd=gpu_bundle.path)

    assert result.returncode == 0
    assert "createRuntime" in gpu_bundle.spec["hooks"]


def test_a_trace_that_is_no_request_changes_no_byte(installation: Any, bundle: Any, host: Path) -> None:
    data = {**bundle.spec, "annotations": {"diapause.dev/gpu": "off"}, "x": "nvidia.com/gpu"}
    bundle.config.write_text(json.dumps(data, indent=3), encoding="utf-8")
    before = bundle.config.read_bytes()

    assert run(installation, host, "create", "-b", str(bundle.path), "c1").returncode == 0

    assert bundle.config.read_bytes() == before
    assert not (host / "run").exists()


def test_two_creates_of_one_id_at_once_do_not_mix(installation: Any, gpu_bundle: Any, host: Path) -> None:
    """The first is through with our part, and its runc has no directory of the container yet."""
    installation.runc.write_text("#!/bin/sh\necho >>$0.started; exec sleep 60\n", encoding="utf-8")
    command = [str(installation.bin / "diapause-runc"), "--root", str(host / "root"), "create"]
    command += ["-b", str(gpu_bundle.path), "c1"]
    with subprocess.Popen(command, env=installation.env) as first:
        try:
            end = time.monotonic() + 30
            while not installation.runc.with_name("runc.started").exists() and time.monotonic() < end:
                time.sleep(0.01)
            other = host / "other"
            shutil.copytree(gpu_bundle.path, other)
            before = Container(str(host / "root"), "c1").load_state()

            result = run(installation, host, "create", "-b", str(other), "c1")

            assert result.returncode == 1
            assert f"process {first.pid} is creating or restoring it" in result.stderr
            assert Container(str(host / "root"), "c1").load_state() == before
        finally:
            first.kill()
    installation.runc.write_text("#!/bin/sh\n", encoding="utf-8")
    assert run(installation, host, "create", "-b", str(other), "c1").returncode == 0


def test_an_id_that_is_taken_meanwhile_keeps_its_state(
    gpu_bundle: Any, host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = iter([False, True])
    monkeypatch.setattr(Call, "is_taken", property(lambda _: next(taken)))
    monkeypatch.setattr(Call, "become_runc", lambda _: sys.exit(0))
    before = gpu_bundle.config.read_bytes()
    words = ["--root", str(host / "root"), "create", "-b", str(gpu_bundle.path), "c1"]

    with pytest.raises(SystemExit):
        main("/usr/bin/runc", words, front="/opt/bin/diapause-runc")

    assert gpu_bundle.config.read_bytes() == before
    assert Container(str(host / "root"), "c1").load_state() is None


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_what_cannot_be_written_is_named_and_nothing_stays(
    gpu_bundle: Any,
    host: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    number: int,
) -> None:
    def full(self: Container, state: dict[str, Any]) -> None:
        raise OSError(number, os.strerror(number), f"{self.directory}/state.json")

    monkeypatch.setattr(Container, "store_state", full)
    before = gpu_bundle.config.read_bytes()
    words = ["--root", str(host / "root"), "create", "-b", str(gpu_bundle.path), "c1"]

    assert main("/usr/bin/runc", words, front="/opt/bin/diapause-runc") == 1

    message = capfd.readouterr().err
    assert f"state.json: {os.strerror(number).lower()}" in message
    assert "[state-not-written]" in message
    assert gpu_bundle.config.read_bytes() == before
    assert list((host / "run" / "c").iterdir()) == []


class TestALibcudaFromAVolume:
    """What a container's root wrote is mounted as a libcuda: nothing of it may ever be loaded on the host."""

    @pytest.fixture(autouse=True)
    def volume(self, gpu_bundle: Any, host: Path) -> None:
        (host / "volume").mkdir()
        (host / "volume" / "evil.so").write_bytes(b"\x7fELF\x02")
        data = gpu_bundle.spec
        for mount in data["mounts"]:
            if "libcuda" in mount["destination"]:
                mount["source"] = str(host / "volume" / "evil.so")
        gpu_bundle.config.write_text(json.dumps(data), encoding="utf-8")

    def test_the_container_is_created_as_one_without_a_gpu(
        self, installation: Any, gpu_bundle: Any, host: Path
    ) -> None:
        before = gpu_bundle.config.read_bytes()

        result = run(installation, host, "create", "-b", str(gpu_bundle.path), "c1")

        assert (result.returncode, result.stderr) == (0, "")
        assert installation.errors == []
        assert "[libcuda-foreign]" in installation.log.read_text(encoding="utf-8")
        assert gpu_bundle.config.read_bytes() == before
        assert not (host / "run").exists()

    def test_one_that_asks_by_annotation_is_refused(
        self, installation: Any, gpu_bundle: Any, host: Path
    ) -> None:
        data = {**gpu_bundle.spec, "annotations": {"diapause.dev/gpu-enabled": "true"}}
        gpu_bundle.config.write_text(json.dumps(data), encoding="utf-8")

        result = run(installation, host, "create", "-b", str(gpu_bundle.path), "c1")

        assert result.returncode == 1
        assert "[libcuda-foreign]" in result.stderr
        assert not installation.record.exists()


def test_an_id_that_runc_knows_is_left_to_runc(installation: Any, gpu_bundle: Any, host: Path) -> None:
    run(installation, host, "create", "-b", str(gpu_bundle.path), "c1")
    container = Container(str(host / "root"), "c1")
    before = container.load_state()
    (host / "root" / "c1").mkdir(parents=True)
    data = {**gpu_bundle.spec, "annotations": {"diapause.dev/gpu": "driver"}}
    gpu_bundle.config.write_text(json.dumps(data), encoding="utf-8")

    run(installation, host, "create", "-b", str(gpu_bundle.path), "c1")

    assert container.load_state() == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"annotations": {"diapause.dev/gpu": "maybe"}}', "'maybe' is not one of intercept, driver, off"),
        ('{"x": "diapause",\n "y": }', "not JSON: Expecting value: line 2 column 7"),
        ('{"annotations": {"diapause.dev/gpu": "driver"}}', "no CDI specification for nvidia.com/gpu in"),
    ],
)
def test_an_error_is_the_last_record_of_the_log_and_the_first_line_of_stderr(
    installation: Any, bundle: Any, host: Path, text: str, message: str
) -> None:
    bundle.config.write_text(text, encoding="utf-8")

    result = run(installation, host, "create", "-b", str(bundle.path), "c1")

    assert (result.returncode, result.stdout) == (1, "")
    assert message in result.stderr
    assert installation.errors == result.stderr.splitlines()
    assert not installation.record.exists()


def test_a_configuration_that_cannot_be_meant_stops_managed_containers_only(
    installation: Any, gpu_bundle: Any, bundle: Any, host: Path
) -> None:
    config = host / "config.toml"
    config.write_text("[criu]\npaht = '/x'\n", encoding="utf-8")
    installation.env["DIAPAUSE_CONFIG"] = str(config)

    assert run(installation, host, "create", "-b", str(bundle.path), "c1").returncode == 0
    result = run(installation, host, "create", "-b", str(gpu_bundle.path), "c2")

    assert result.returncode == 1
    assert "unknown key 'paht' in section [criu]; did you mean 'path'?" in result.stderr


def test_an_unexpected_exception_leaves_a_trace_in_a_file_only(
    installation: Any, gpu_bundle: Any, host: Path
) -> None:
    (host / "state").write_text("no directory", encoding="utf-8")
    data = gpu_bundle.spec
    data["linux"]["devices"] = [{"path": "/dev/nvidia0", "type": "c", "major": 1, "minor": 3}]
    gpu_bundle.config.write_text(json.dumps(data), encoding="utf-8")

    result = run(installation, host, "create", "-b", str(gpu_bundle.path), "c1")

    assert result.returncode == 1
    assert "Traceback" not in result.stderr + installation.log.read_text(encoding="utf-8")
    assert len(result.stderr.splitlines()) == 1
