"""What is no file, no program and no container: answered soon, with a code, and nothing lost."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.harness import fakes, proc
from integration.harness.bundle import RuncError, Runtime
from integration.harness.wait import until
from integration.harness.workloads import COUNTER, CPU


@pytest.fixture
def config(runtime: Runtime) -> Iterator[Path]:
    """The place of the configuration, empty until the test is over."""
    path = runtime.settings.config
    path.unlink()
    yield path
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink()


@pytest.mark.parametrize("kind", ["fifo", "folder", "zero", "loop"])
def test_a_configuration_that_is_no_file(runtime: Runtime, config: Path, kind: str) -> None:
    before = runtime.footprint()
    if kind == "fifo":
        os.mkfifo(config)
    elif kind == "folder":
        config.mkdir()
    else:
        config.symlink_to("/dev/zero" if kind == "zero" else config)

    managed = runtime.bundle(*COUNTER)
    with pytest.raises(RuncError, match=rf"{config}.*\[config-unreadable\]"):
        managed.run()

    assert runtime.footprint() == before
    runtime.bundle(*CPU, engine="").run().goes_on()  # found by its PATH, as without a configuration


def test_a_configuration_that_is_too_deep(runtime: Runtime, config: Path) -> None:
    config.write_text("x=" + "[" * 100_000)

    with pytest.raises(RuncError, match=r"\[config-malformed\]"):
        runtime.bundle(*COUNTER).run()


@pytest.mark.parametrize("name", ["core-1.img", "diapause.json", "dump.log", "pages-1.img"])
@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_an_image_directory_with_traps(runtime: Runtime, tmp_path: Path, name: str, kind: str) -> None:
    """CRIU follows links, and waits for whoever reads a fifo."""
    precious = tmp_path / "precious"
    precious.write_text("precious")
    image = tmp_path / "image"
    image.mkdir()
    if kind == "link":
        (image / name).symlink_to(precious)
    elif kind == "fifo":
        os.mkfifo(image / name)
    else:
        (image / name).mkdir()
    container = runtime.bundle(*COUNTER).run()
    container.output.wait_step(3)

    with pytest.raises(RuncError, match=rf"{name}.*\[image-path\]"):
        container.checkpoint(image)

    assert precious.read_text() == "precious"
    container.goes_on()


def test_a_container_that_is_created_and_not_started(runtime: Runtime, tmp_path: Path) -> None:
    container = runtime.bundle(*COUNTER)
    container.create()

    with pytest.raises(RuncError, match=r"not started.*\[container-not-running\]"):
        container.checkpoint(tmp_path / "image")

    runtime("start", container.id)
    container.output.wait_step(3)
    container.checkpoint(tmp_path / "image")
    container.restore(tmp_path / "image")
    container.goes_on()


@pytest.mark.parametrize(
    "body", ["exec cat /dev/zero", "exec sleep 1000", "exec head -c 3000000 /dev/urandom", "kill -9 $$"]
)
def test_a_criu_that_tells_no_version(runtime: Runtime, tmp_path: Path, body: str) -> None:
    folder = tmp_path / "fake"
    folder.mkdir()
    fake = folder / "criu"
    fake.write_text(f"#!/bin/sh\n{body}\n")
    fake.chmod(0o755)
    container = runtime.bundle(*COUNTER).run()
    container.output.wait_step(3)
    runtime.settings.configure(f'path = "{runtime.tools.find("criu")}"', f'path = "{fake}"')

    with pytest.raises(RuncError, match=r"\[criu-too-old\]"):
        container.checkpoint(tmp_path / "image", seconds=40)

    assert runtime.footprint()["processes"] == []
    container.goes_on()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_criu_that_never_answers(runtime: Runtime, tmp_path: Path, number: signal.Signals) -> None:
    """Whoever asked gives up: so does the engine, as long as CRIU holds no process."""
    real = runtime.tools.find("criu")
    folder = tmp_path / "fake"
    folder.mkdir()
    fake = folder / "criu"
    asked = folder / "asked"
    fake.write_text(f'#!/bin/sh\n[ "$1" = swrk ] || exec {real} "$@"\necho $$ >>{asked}\nexec sleep 100\n')
    fake.chmod(0o755)
    container = runtime.bundle(*COUNTER).run()
    container.output.wait_step(3)
    runtime.settings.configure(f'path = "{real}"', f'path = "{fake}"')
    dump = runtime.start(
        "checkpoint", "--image-path", str(tmp_path / "i"), "--work-path", str(tmp_path), container.id
    )
    until(lambda: asked.exists() and asked.read_text().endswith("\n"), "request to criu")

    dump.send_signal(number)

    try:
        until(lambda: not list(runtime.settings.run_dir.glob("c/*/journal")), "end of the undoing")
        container.goes_on()
    finally:
        for line in asked.read_text().split():
            proc.kill(int(line), signal.SIGKILL)
        dump.communicate(timeout=60)
    runtime.settings.reset()
    container.checkpoint(tmp_path / "again")
    container.restore(tmp_path / "again")
    container.goes_on()


def test_an_image_that_becomes_read_only(runtime: Runtime, tmp_path: Path) -> None:
    """What cannot be removed there any more does not keep the container from anything."""
    folder = fakes.full(tmp_path / "small", "64m")
    (folder / "image").mkdir()
    os.system(f"mount -o remount,ro {folder}")
    container = runtime.bundle(*COUNTER).run()
    container.output.wait_step(3)
    try:
        with pytest.raises(RuncError, match=r"read-only file system"):
            container.checkpoint(folder / "image")
        assert not list(runtime.settings.run_dir.glob("c/*/journal"))
        container.goes_on()
        container.checkpoint(tmp_path / "image")
        container.restore(tmp_path / "image")
        container.goes_on()
    finally:
        fakes.empty(folder)


def test_an_empty_journal(runtime: Runtime, tmp_path: Path) -> None:
    """The engine was killed, or the disk full, before it had written a word."""
    container = runtime.bundle(*COUNTER).run()
    container.output.wait_step(3)
    (folder,) = runtime.settings.run_dir.glob("c/*")
    (folder / "journal").write_bytes(b"")

    runtime("state", container.id)

    assert not (folder / "journal").exists()
    container.checkpoint(tmp_path / "image")
    container.restore(tmp_path / "image")
    container.goes_on()


def test_a_full_run_directory(runtime: Runtime, tmp_path: Path) -> None:
    """Refused with the name of the file, or done; and afterwards everything works again."""
    container = runtime.bundle(*COUNTER).run()
    container.output.wait_step(3)
    (folder,) = runtime.settings.run_dir.glob("c/*")
    small = fakes.full(tmp_path / "small", "256k")
    try:
        os.system(f"cp -a {folder}/. {small}/ && mount --bind {small} {folder}")
        os.system(f"dd if=/dev/zero of={small}/filler bs=4k 2>/dev/null")
        with pytest.raises(RuncError, match=rf"{folder}/\S+: no space left on device"):
            container.checkpoint(tmp_path / "image")
        container.goes_on()
    finally:
        os.system(f"umount -l {folder}")
        fakes.empty(small)
    container.checkpoint(tmp_path / "image")
    container.restore(tmp_path / "image")
    container.goes_on()
