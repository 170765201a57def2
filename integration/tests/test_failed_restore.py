"""A restore that fails says why, leaves nothing behind, and can be repeated."""

import json
import re
import shutil
from pathlib import Path

import pytest

from integration.harness import fakes
from integration.harness.bundle import Bundle, RuncError, Runtime
from integration.harness.tools import toolset
from integration.harness.workloads import COUNTER, CPU

FAST = "[driver]\nrestore-timeout = 2.0\n"


@pytest.fixture
def before(runtime: Runtime) -> dict[str, list[str]]:
    """The footprint of the runtime without any container."""
    return runtime.footprint()


def saved(runtime: Runtime, image: Path, *workload: str, fault: str = "", **annotations: str) -> Bundle:
    """A container that was saved and has exited."""
    env = {"DIAPAUSE_SOFTGPU_FAULT": fault} if fault else {}
    container = runtime.bundle(*workload, env=env, annotations=annotations).run()
    container.output.wait_step(3)
    container.checkpoint(image)
    return container


def refused(container: Bundle, image: Path, match: str) -> str:
    """The restore fails with this message; return it."""
    with pytest.raises(RuncError, match=match) as failure:
        container.restore(image)
    assert container.state() == {}
    return failure.value.stderr


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("restore=fail", "driver-restore"),
        ("restore=hang", "driver-hung"),
        ("unlock=fail", "driver-unlock"),
        ("unlock=hang", "driver-hung"),
    ],
)
def test_a_driver_call_that_fails(
    runtime: Runtime, before: dict[str, list[str]], tmp_path: Path, fault: str, code: str
) -> None:
    runtime.settings.add(FAST)
    container = saved(runtime, tmp_path / "image", *COUNTER, fault=fault)

    refused(container, tmp_path / "image", rf"restore {container.id}: .*\[{code}\]")

    assert runtime.footprint() == before


@pytest.mark.parametrize("workload", [COUNTER, CPU], ids=["counter", "no CUDA at all"])
def test_criu_that_dies(
    runtime: Runtime, before: dict[str, list[str]], tmp_path: Path, workload: tuple[str, ...]
) -> None:
    container = saved(runtime, tmp_path / "image", *workload)
    real = runtime.tools.find("criu")
    fake = fakes.failing_criu(tmp_path / "fake", real, request=2)
    runtime.settings.configure(f'path = "{real}"', f'path = "{fake}"')

    refused(container, tmp_path / "image", r"runc: it ended with status 1 \[runc-failed\]")  # nobody said why

    assert runtime.footprint() == before
    container.restore(tmp_path / "image")
    container.goes_on()


@pytest.mark.parametrize("action", ["setup-namespaces", "post-setup-namespaces", "post-restore"])
def test_criu_that_fails_on_its_way(
    runtime: Runtime, before: dict[str, list[str]], tmp_path: Path, action: str
) -> None:
    config = fakes.failing_action(tmp_path, action)
    container = saved(runtime, tmp_path / "image", *COUNTER, **{"org.criu.config": str(config)})

    stderr = refused(container, tmp_path / "image", r"\[criu-failed\]")

    log = Path(stderr.rpartition("(log: ")[2].partition(")")[0])
    assert "Restoring FAILED" in log.read_text()
    assert runtime.footprint() == before
    config.write_text("")
    container.restore(tmp_path / "image")
    container.goes_on()


def _truncate(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _edit(**changes: object):  # type: ignore[no-untyped-def]
    def apply(image: Path) -> None:
        path = image / "diapause.json"
        document = json.loads(path.read_text())
        document.update(changes)
        path.write_text(json.dumps(document))

    return apply


DAMAGES = {
    "missing": (shutil.rmtree, "snapshot-missing"),
    "empty": (lambda image: [p.unlink() for p in image.iterdir()], "snapshot-incomplete"),
    "without manifest": (lambda image: (image / "diapause.json").unlink(), "snapshot-incomplete"),
    "manifest cut off": (lambda image: _truncate(image / "diapause.json"), "snapshot-malformed"),
    "manifest garbage": (
        lambda image: (image / "diapause.json").write_bytes(bytes(64)),
        "snapshot-malformed",
    ),
    "manifest of another kind": (
        lambda image: (image / "diapause.json").write_text("[]"),
        "snapshot-malformed",
    ),
    "manifest a link": (lambda image: _link(image / "diapause.json"), "snapshot-bad-file"),
    "newer format": (_edit(version=99), "snapshot-version"),
    "unknown feature": (_edit(features={"required": ["teleport"], "optional": []}), "snapshot-feature"),
    "inventory missing": (lambda image: (image / "inventory.img").unlink(), "snapshot-file-missing"),
    "inventory cut off": (lambda image: _truncate(image / "inventory.img"), "snapshot-short-file"),
    "pages missing": (lambda image: (image / "pages-1.img").unlink(), "snapshot-file-missing"),
    "pages cut off": (lambda image: _truncate(image / "pages-1.img"), "snapshot-short-file"),
    "pages changed": (lambda image: _flip(image / "pages-1.img"), "snapshot-file-digest"),
    "core changed": (lambda image: _flip(image / "core-1.img"), "snapshot-file-digest"),
    "a file too many": (lambda image: (image / "core-99.img").write_bytes(b"x"), "snapshot-unexpected-file"),
    "pages a link": (lambda image: _link(image / "pages-1.img"), "snapshot-bad-file"),
}


def _link(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to("/etc/hostname")


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_image(runtime: Runtime, before: dict[str, list[str]], tmp_path: Path, damage: str) -> None:
    container = saved(runtime, tmp_path / "image", *COUNTER)
    spoil, code = DAMAGES[damage]
    spoil(tmp_path / "image")

    message = refused(container, tmp_path / "image", rf"{tmp_path}/image\S*: .*\[{code}\]")

    assert "Traceback" not in message
    assert runtime.footprint() == before


def test_an_image_of_another_driver(runtime: Runtime, before: dict[str, list[str]], tmp_path: Path) -> None:
    """The node has another libcuda than the one the snapshot was taken with: a file of other content."""
    container = saved(runtime, tmp_path / "image", *COUNTER)
    cdi = runtime.settings.cdi / "gpu.json"
    original = cdi.read_text()
    source = re.findall(r'"hostPath": "([^"]*libcuda[^"]*)"', original)[0]
    other = tmp_path / "other" / "libcuda.so.1"
    other.parent.mkdir()
    shutil.copy(source, other)
    with other.open("ab") as file:
        file.write(b"another build")
    cdi.write_text(original.replace(source, str(other)))
    try:
        refused(
            container, tmp_path / "image", r"the snapshot needs driver .*this host has.*\[driver-differs\]"
        )
        assert runtime.footprint() == before
    finally:
        cdi.write_text(original)
    container.restore(tmp_path / "image")
    container.goes_on()


def test_a_restore_over_a_running_container_leaves_it_alone(runtime: Runtime, tmp_path: Path) -> None:
    container = runtime.bundle(*COUNTER).run()
    container.output.wait_step(3)
    container.checkpoint(tmp_path / "image", "--leave-running")
    other = runtime.bundle(*COUNTER)

    with pytest.raises(RuncError, match="container with given ID already exists"):
        other.restore(tmp_path / "image", id=container.id)

    container.goes_on()
    container.checkpoint(tmp_path / "again")


def test_criu_that_is_missing_or_too_old(
    runtime: Runtime, before: dict[str, list[str]], tmp_path: Path
) -> None:
    container = saved(runtime, tmp_path / "image", *COUNTER)
    real = runtime.tools.find("criu")
    old = fakes.old_criu(tmp_path / "old", "3.17.1")
    runtime.settings.configure(f'path = "{real}"', f'path = "{old}"')
    refused(container, tmp_path / "image", r"is version 3\.17\.1, needed is 4\.2 or later.*\[criu-too-old\]")
    runtime.settings.configure(f'path = "{old}"', f'path = "{tmp_path}/nowhere/criu"')
    refused(container, tmp_path / "image", r"\[criu-missing\]")

    assert runtime.footprint() == before


def test_the_other_tool_set_reads_the_image(runtime: Runtime, tmp_path: Path) -> None:
    """runc's version is not part of the snapshot's format: what 1.5 wrote, 1.1 restores."""
    container = saved(runtime, tmp_path / "image", *COUNTER)
    runtime.settings.configure(str(runtime.tools.find("runc")), str(toolset("debian").find("runc")))

    container.restore(tmp_path / "image")

    container.goes_on()
