"""Bad input gets one clear line: what failed, why, what to do, a code; and nothing is lost or left."""

import contextlib
import re
import subprocess
from pathlib import Path

import pytest

from integration.harness import fakes
from integration.harness.bundle import Bundle, RuncError, Runtime
from integration.harness.tools import install
from integration.harness.workloads import COUNTER, CPU


@pytest.fixture
def before(runtime: Runtime) -> dict[str, list[str]]:
    return runtime.footprint()


def refused(runtime: Runtime, container: Bundle, match: str, before: dict[str, list[str]]) -> None:
    """The container does not start, for this reason, and leaves nothing."""
    with pytest.raises(RuncError, match=match) as failure:
        container.run()
    assert "Traceback" not in failure.value.stderr
    assert runtime.footprint() == before


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ('[criu]\nnetwork-lok = "skip"\n', r"unknown key 'network-lok'.*did you mean 'network-lock'\?"),
        ('[cruu]\npath = ""\n', r"unknown section \[cruu\].*did you mean 'criu'\?"),
        ('[log]\nlevel = "loud"\n', r"\[log\] level.*loud.*warning"),
        ("[driver]\nlock-timeout = 1e9\n", r"\[driver\] lock-timeout.*3600"),
        ('[driver]\nlock-timeout = "soon"\n', r"\[driver\] lock-timeout.*soon"),
        ("[log\n", r"config-malformed"),
    ],
)
def test_a_configuration_that_cannot_be_meant(
    runtime: Runtime, before: dict[str, list[str]], text: str, match: str
) -> None:
    config = runtime.settings.config.read_text()
    runtime.settings.config.write_text(text)

    refused(runtime, runtime.bundle(*COUNTER), match, before)

    runtime.bundle(*CPU, engine="").run().goes_on()  # containers without a GPU start all the same
    runtime.settings.config.write_text(config)


def test_a_variable_that_cannot_be_meant(runtime: Runtime, before: dict[str, list[str]]) -> None:
    runtime.env["DIAPAUSE_LOG_LEVEL"] = "loud"
    try:
        refused(runtime, runtime.bundle(*COUNTER), r"DIAPAUSE_LOG_LEVEL.*loud", before)
    finally:
        del runtime.env["DIAPAUSE_LOG_LEVEL"]


def test_a_specification_that_is_no_json(runtime: Runtime, before: dict[str, list[str]]) -> None:
    """The message says where."""
    container = runtime.bundle(*COUNTER)
    text = container.config.read_text().replace('"ociVersion": "1.0.2",', '"ociVersion" "1.0.2",')
    container.config.write_text(text)
    line = 1 + text[: text.index('"1.0.2"')].count("\n")

    refused(runtime, container, rf"{container.config}.*line {line}\b.*\[spec-malformed\]", before)


@pytest.mark.parametrize(
    ("key", "value"),
    [("mounts", 7), ("linux", []), ("hooks", "none"), ("annotations", [1])],
)
def test_a_specification_of_the_wrong_shape(
    runtime: Runtime, before: dict[str, list[str]], key: str, value: object
) -> None:
    container = runtime.bundle(*COUNTER)
    container.spec[key] = value
    container.spec["x-note"] = "diapause"  # whatever is wrong, the front takes it for ours
    container.write_spec()

    with pytest.raises(RuncError) as failure:
        container.run()

    assert "Traceback" not in failure.value.stderr
    assert "unexpected" not in failure.value.stderr
    assert runtime.footprint() == before


def test_an_engine_that_does_not_exist(runtime: Runtime, before: dict[str, list[str]]) -> None:
    refused(runtime, runtime.bundle(*COUNTER, engine="magic"), r"magic.*intercept.*driver", before)


def test_a_node_without_cdi_specification(
    runtime: Runtime, before: dict[str, list[str]], tmp_path: Path
) -> None:
    runtime.settings.configure(f'spec-dirs = ["{runtime.settings.cdi}"]', f'spec-dirs = ["{tmp_path}"]')

    refused(runtime, runtime.bundle(*COUNTER), r"diapause cdi generate.*\[cdi", before)


def test_a_driver_that_is_gone(runtime: Runtime, before: dict[str, list[str]]) -> None:
    """The specification names a libcuda that is not there any more, as after an upgrade of the driver."""
    cdi = runtime.settings.cdi / "gpu.json"
    original = cdi.read_text()
    cdi.write_text(re.sub(r'("hostPath": "[^"]*/libcuda\.so\.)1"', r'\g<1>0"', original))
    try:
        refused(runtime, runtime.bundle(*COUNTER), r"libcuda\.so\.0.*\[libcuda-missing\]", before)
    finally:
        cdi.write_text(original)


def test_no_criu_or_one_too_old(runtime: Runtime, tmp_path: Path) -> None:
    """At a checkpoint: the container runs on. Creating needs no CRIU."""
    real = runtime.tools.find("criu")
    old = fakes.old_criu(tmp_path / "old", "3.17.1")
    container = runtime.bundle(*COUNTER).run()
    runtime.settings.configure(f'path = "{real}"', f'path = "{old}"')

    with pytest.raises(RuncError, match=r"is version 3\.17\.1, needed is 4\.2 or later.*\[criu-too-old\]"):
        container.checkpoint(tmp_path / "image")

    runtime.settings.configure(f'path = "{old}"', f'path = "{tmp_path}/criu"')
    with pytest.raises(RuncError, match=r"\[criu-missing\]"):
        container.checkpoint(tmp_path / "image")
    container.goes_on()


@pytest.mark.parametrize("link", [".diapause", "usr/lib64", "usr/lib", "dev"])
def test_links_in_the_rootfs_do_not_lead_outside(runtime: Runtime, tmp_path: Path, link: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    container = runtime.bundle("/bin/sh", "-c", "exec sleep 1000")
    target = container.path / "rootfs" / link
    if target.exists():
        target.rename(target.with_name("was"))
    target.symlink_to(outside)

    with contextlib.suppress(RuncError):  # runc may refuse such a rootfs; it must not be followed
        container.run()

    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("stdin", ["", "garbage", "{}", "[]", '{"id": "x", "pid": "y"}', "x" * (2 << 20)])
@pytest.mark.parametrize("verb", ["register", "cleanup", "commit"])
def test_a_hook_started_by_hand(
    runtime: Runtime, before: dict[str, list[str]], verb: str, stdin: str
) -> None:
    done = subprocess.run(
        [install().bin / "diapause-hook", verb, "--key", "0" * 32], input=stdin, text=True,
        capture_output=True, env=runtime.env, timeout=20, check=False,
    )  # fmt: skip

    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 1
    if verb == "register":
        assert done.returncode == 1
        assert done.stderr
    assert runtime.footprint() == before


@pytest.mark.parametrize("arguments", [[], ["bogus"], ["register"], ["register", "--key", "../../etc"]])
def test_a_hook_with_wrong_arguments(
    runtime: Runtime, before: dict[str, list[str]], arguments: list[str]
) -> None:
    done = subprocess.run(
        [install().bin / "diapause-hook", *arguments], stdin=subprocess.DEVNULL, text=True,
        capture_output=True, env=runtime.env, timeout=20, check=False,
    )  # fmt: skip

    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert runtime.footprint() == before


def test_a_gpu_process_that_went_around_the_library(runtime: Runtime, tmp_path: Path) -> None:
    """With `intercept` it is refused before anything is touched."""
    container = runtime.bundle(*COUNTER, engine="intercept", env={"LD_LIBRARY_PATH": "/.diapause"}).run()
    container.output.wait_step(3)

    with pytest.raises(RuncError, match=r"without the library.*\[gpu-process-without-library\]"):
        container.checkpoint(tmp_path / "image")

    container.goes_on()


def test_an_image_path_that_is_a_file(runtime: Runtime, tmp_path: Path) -> None:
    container = runtime.bundle(*COUNTER).run()
    container.output.wait_step(3)
    file = tmp_path / "file"
    file.write_text("precious")

    with pytest.raises(RuncError, match=r"is not a directory.*\[image-path\]"):
        container.checkpoint(file)

    assert file.read_text() == "precious"
    container.goes_on()


@pytest.mark.parametrize("flag", ["--lazy-pages", "--parent-path=x"])
def test_flags_that_a_gpu_does_not_allow(runtime: Runtime, tmp_path: Path, flag: str) -> None:
    container = runtime.bundle(*COUNTER).run()
    container.output.wait_step(3)

    with pytest.raises(RuncError, match=r"\[flag-not-supported\]"):
        container.checkpoint(tmp_path / "image", flag)

    container.goes_on()
