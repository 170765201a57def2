"""`diapause snapshot` and the local store, on snapshots of real containers."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.harness.bundle import Bundle, RuncError, Runtime
from integration.harness.tools import install
from integration.harness.wait import until
from integration.harness.workloads import COUNTER

GPUD = '[gpu]\nidle-timeout = 5.0\npool = "64MiB"\n'  # a machine of tests is small


@pytest.fixture(autouse=True)
def own_store(runtime: Runtime, tmp_path: Path) -> None:
    runtime.settings.add(f'{GPUD}[snapshot]\nstore-dir = "{tmp_path}/store"\n')


def started(runtime: Runtime, snapshot: str = "", *, fault: str = "", engine: str = "intercept") -> Bundle:
    """`snapshot` is added to that section of the configuration."""
    runtime.settings.add(snapshot)
    env = {"DIAPAUSE_SOFTGPU_FAULT": fault} if fault else {}
    container = runtime.bundle(*COUNTER, engine=engine, env=env).run()
    container.output.wait_step(3)
    return container


def diapause(runtime: Runtime, *args: str, status: int = 0) -> str:
    done = subprocess.run(
        [str(install().cli), "snapshot", *args], env={**os.environ, **runtime.settings.env}, timeout=60,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def listed(runtime: Runtime) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(diapause(runtime, "list", "--json"))
    return found


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    place = next(number for number, byte in enumerate(data) if byte)
    data[place] ^= 1
    path.write_bytes(data)


def test_a_local_snapshot_is_shown_verified_and_restored(runtime: Runtime, tmp_path: Path) -> None:
    image = tmp_path / "image"
    container = started(runtime, 'placement = "local"')
    container.checkpoint(image)

    [row] = listed(runtime)
    assert (row["container"], row["image"], row["fault"]) == (container.id, str(image), "")
    assert row["gpu_bytes"] > 0
    assert [path.name for path in image.glob("diapause-gpu*")] == ["diapause-gpu.idx"]
    shown = json.loads(diapause(runtime, "show", str(image), "--json"))
    assert sum(a["size_bytes"] for a in shown["allocations"]) == row["gpu_bytes"]
    assert shown["evacuated"] == "intercept"
    assert "phases" in diapause(runtime, "show", str(image))
    diapause(runtime, "verify", str(image), row["name"])

    container.restore(image)
    container.goes_on()


def test_what_clients_pack_stays_small(runtime: Runtime, tmp_path: Path) -> None:
    image = tmp_path / "ctrd-checkpoint17"
    container = started(runtime, "embed-limit = 0")

    container.checkpoint(image)
    container.restore(image)
    container.goes_on()
    container.checkpoint(tmp_path / "stays")

    assert [row["image"] for row in listed(runtime)] == [str(image)]
    assert list((tmp_path / "stays").glob("diapause-gpu-*.img"))


def test_an_embedded_one_needs_no_store(runtime: Runtime, tmp_path: Path) -> None:
    container = started(runtime, 'placement = "local"')
    container.checkpoint(tmp_path / "image")

    diapause(runtime, "embed", "--rm", str(tmp_path / "image"))
    shutil.move(tmp_path / "image", tmp_path / "elsewhere")

    assert listed(runtime) == []
    diapause(runtime, "verify", str(tmp_path / "elsewhere"))
    container.restore(tmp_path / "elsewhere")
    container.goes_on()


def test_a_missing_one_is_refused_before_anything_starts(runtime: Runtime, tmp_path: Path) -> None:
    container = started(runtime, 'placement = "local"')
    container.checkpoint(tmp_path / "image")
    [row] = listed(runtime)
    diapause(runtime, "rm", row["name"])

    with pytest.raises(RuncError, match=r"is not in .*\[snapshot-local-missing\]"):
        container.restore(tmp_path / "image")
    diapause(runtime, "verify", str(tmp_path / "image"), status=4)
    until(lambda: runtime.settings.registered() == [] or None, "end of what is registered")


def test_a_damaged_block_is_named_and_not_restored(runtime: Runtime, tmp_path: Path) -> None:
    container = started(runtime, 'placement = "local"')
    container.checkpoint(tmp_path / "image")
    [row] = listed(runtime)
    damage(next(file for file in Path(row["path"]).glob("diapause-gpu-*.img") if any(file.read_bytes())))

    text = diapause(runtime, "verify", str(tmp_path / "image"), status=3)

    assert re.search(
        r"allocation \d+ of process 1 at byte \d+: diapause-gpu-\d+\.img at byte \d+ has another", text
    )
    with pytest.raises(RuncError, match="restore"):
        container.restore(tmp_path / "image")
    until(lambda: runtime.settings.registered() == [] or None, "end of what is registered")


def test_a_full_store_refuses_and_the_container_goes_on(runtime: Runtime, tmp_path: Path) -> None:
    container = started(runtime, 'placement = "local"\nstore-limit = "1MiB"')

    with pytest.raises(RuncError, match=r"of 1048576 bytes are taken.*\[store-full\]"):
        container.checkpoint(tmp_path / "image", "--leave-running")

    container.goes_on()
    assert listed(runtime) == []


def test_an_annotation_says_it_for_one_container(runtime: Runtime, tmp_path: Path) -> None:
    annotations = {"diapause.dev/snapshot-placement": "local"}
    container = runtime.bundle(*COUNTER, engine="intercept", annotations=annotations).run()
    container.output.wait_step(3)

    container.checkpoint(tmp_path / "image")

    assert len(listed(runtime)) == 1


def test_a_container_that_does_not_come_back_leaves_its_snapshot(runtime: Runtime, tmp_path: Path) -> None:
    """The client deletes the image when it hears of the error, as containerd does."""
    image = tmp_path / "ctrd-checkpoint17"
    container = started(runtime, fault="restore=fail:1", engine="driver")

    with pytest.raises(RuncError, match=r"\[resume-failed\]") as failure:
        container.checkpoint(image, "--leave-running")
    shutil.rmtree(image)
    runtime("delete", "-f", container.id)

    [row] = listed(runtime)
    assert row["kind"] == "image"
    assert f"restore it from the snapshot in {row['path']} " in str(failure.value)
    diapause(runtime, "verify", row["name"])


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A tmpfs of its own."""
    path = tmp_path / "memory"
    path.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256M,mode=0700", "tmpfs", path], check=True, timeout=10
    )
    yield path
    subprocess.run(["umount", "-l", path], check=True, timeout=10)


@pytest.mark.parametrize("ready", ["0", "128MiB"])
def test_the_store_in_memory_comes_first(runtime: Runtime, tmp_path: Path, memory: Path, ready: str) -> None:
    """Also with files that the controller has made ready, and that get a second name."""
    runtime.settings.configure('pool = "64MiB"', f'pool = "64MiB"\nmemory-tier = "{ready}"')
    image = tmp_path / "image"
    container = started(runtime, f'memory-dir = "{memory}"\nembed-limit = 0')
    container.checkpoint(image)

    [row] = listed(runtime)
    assert (row["where"], row["path"]) == ("memory", f"{memory}/snapshots/{row['name']}")
    diapause(runtime, "verify", str(image))
    container.restore(image)
    container.goes_on()
    container.checkpoint(tmp_path / "second")
    container.restore(tmp_path / "second")
    container.goes_on()
    diapause(runtime, "embed", "--rm", str(image))
    assert len(listed(runtime)) == 1
