"""A snapshot brings the library along: an upgraded host, or another one, restores with that one."""

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from integration.harness.bundle import Bundle, RuncError, Runtime
from integration.harness.tools import install
from integration.harness.workloads import COUNTER

LIBRARY = "diapause-libcuda.so.1"


@pytest.fixture
def upgraded(tmp_path: Path) -> dict[str, str]:
    """The environment of an installation whose library is another one."""
    command = [
        str(install().bin / "python3"),
        "-I",
        "-c",
        "from diapause.runtime import native; print(native.path())",
    ]
    own = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.strip()
    newer = tmp_path / "newer"
    shutil.copytree(own, newer)
    with (newer / "lib" / "libdiapause-cuda.so").open("ab") as library:
        library.write(b"newer")
    (newer / "lib" / "libdiapause-cuda.so.sha256").unlink()
    return {"DIAPAUSE_NATIVE_DIR": str(newer)}


@pytest.fixture
def image(tmp_path: Path) -> Path:
    return tmp_path / "image"


@pytest.fixture
def saved(runtime: Runtime, image: Path) -> Bundle:
    """A container with the library that was saved and has exited, and its copy of the library is gone."""
    container = runtime.bundle(*COUNTER, engine="intercept").run()
    container.output.wait_step(3)
    container.checkpoint(image)
    shutil.rmtree(copies(runtime))
    return container


def copies(runtime: Runtime) -> Path:
    return Path(runtime.settings.env["DIAPAUSE_STATE_DIR"], "lib")


def test_a_host_that_lacks_the_library_takes_it_from_the_snapshot(
    runtime: Runtime, image: Path, saved: Bundle, upgraded: dict[str, str]
) -> None:
    digest = hashlib.sha256((image / LIBRARY).read_bytes()).hexdigest()

    saved.restore(image, env=upgraded)

    saved.goes_on()
    assert [folder.name for folder in copies(runtime).iterdir()] == [digest]


@pytest.mark.parametrize("damage", ["other bytes", "gone"])
def test_a_library_that_is_not_the_one_is_never_mounted(
    runtime: Runtime, image: Path, saved: Bundle, upgraded: dict[str, str], damage: str
) -> None:
    if damage == "gone":
        (image / LIBRARY).unlink()
    else:
        (image / LIBRARY).write_bytes(b"\x7fELF" + bytes(1000))

    with pytest.raises(RuncError, match=r"this host lacks the library .*\[library-not-here\]"):
        saved.restore(image, env=upgraded)

    assert saved.state() == {}
    assert list(copies(runtime).iterdir()) == []
