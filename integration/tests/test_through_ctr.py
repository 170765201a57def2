"""What a user of `ctr` sees: how a GPU is asked for, and what a failure says."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from integration.harness import proc
from integration.harness.ctr import CtrError
from integration.harness.node import IMAGE, Node
from integration.harness.tools import install
from integration.harness.workloads import COUNTER, GPU, MANAGED


def libraries(pid: int) -> set[str]:
    """The libcuda files that a process has mapped, as the container names them."""
    return {line.split()[0] for line in proc.maps(pid) if "libcuda" in line}


def test_intercept_puts_the_library_in_front_over_two_rounds(node: Node) -> None:
    container = node.run(*COUNTER, engine="intercept")
    container.output.wait_step(3)
    mapped = libraries(container.pid())
    assert "/.diapause/libcuda.so.1" in mapped
    assert len(mapped) == 2
    for _ in range(2):
        image = container.checkpoint()
        container.goes_on()
        container.remove()
        container = node.restore(image)
        container.goes_on()
        assert libraries(container.pid()) == mapped
        node.forget(image)


def test_intercept_with_threads_that_poll_and_two_processes(current: Node) -> None:
    for name in ("polling events", "two processes"):
        container = current.run(*GPU[name], engine="intercept")
        container.output.wait_step(3)
        image = container.checkpoint()
        container.remove()
        current.restore(image).goes_on()


def test_gpu_enabled_alone_means_the_configured_default(current: Node) -> None:
    container = current.run(*COUNTER, engine="", options=["--annotation", "diapause.dev/gpu-enabled=true"])
    container.output.wait_step(3)

    assert "/.diapause/libcuda.so.1" in libraries(container.pid())


def test_off_leaves_the_container_alone(current: Node) -> None:
    container = current.run("/bin/ls", "/dev", engine="off")

    container.output.wait_line("^zero$")
    assert "diapause" not in container.output.text()
    assert "diapause-hook" not in current.config(container)


def test_a_device_by_its_cdi_name(current: Node) -> None:
    """`ctr run --device`: the client makes the edit, the wrapper recognises it."""
    name = current.name()
    container = current.adopt(name)
    runtime = ["--runc-binary", str(install().runtime), "--device", "diapause.dev/gpu=0"]
    shell = ["/bin/sh", "-c", 'exec "$@" >>/out/log 2>&1', "sh"]
    argv = current.ctr.argv("run", "-d", *runtime, IMAGE, name, *shell, *COUNTER)
    mount = 'mkdir -p /var/run/cdi && mount --bind "$0" /var/run/cdi && exec "$@"'  # where ctr looks
    subprocess.run(
        ["unshare", "--mount", "sh", "-c", mount, str(current.settings.cdi), *argv],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    container.output.wait_step(3)
    assert "/.diapause/libcuda.so.1" in libraries(container.pid())
    image = container.checkpoint()
    container.remove()

    current.restore(image).goes_on()


def test_a_failed_dump_reaches_the_user_and_the_container_counts_on(node: Node) -> None:
    container = node.run(*MANAGED)
    container.output.wait_step(3)

    with pytest.raises(
        CtrError, match=rf"checkpoint {container.id}: .*managed memory.*\[driver-not-supported\]"
    ):
        container.checkpoint()

    container.goes_on()


def test_a_failed_dump_is_forgotten_by_the_next_one(node: Node) -> None:
    container = node.run(*COUNTER, env={"DIAPAUSE_SOFTGPU_FAULT": "checkpoint=fail:1"})
    container.output.wait_step(3)
    with pytest.raises(CtrError, match=r"\[driver-checkpoint\]"):
        container.checkpoint()
    container.goes_on()

    image = container.checkpoint()

    container.remove()
    node.restore(image).goes_on()


def test_a_failed_restore_reaches_the_user_and_leaves_nothing(node: Node) -> None:
    before = node.footprint()
    container = node.run(*COUNTER, env={"DIAPAUSE_SOFTGPU_FAULT": "restore=fail"})
    container.output.wait_step(3)
    with pytest.raises(CtrError, match=r"\[resume-failed\]"):  # ctr lets it run on: lost, the snapshot is not
        container.checkpoint()
    folder = node.path / "image"
    container.remove()
    second = node.run(*COUNTER, env={"DIAPAUSE_SOFTGPU_FAULT": "restore=fail"})
    second.output.wait_step(3)
    second.checkpoint_exit(str(folder), str(node.path / "work"))
    second.remove()

    assert {k: v for k, v in node.footprint().items() if k != "temporary"} == {
        k: v for k, v in before.items() if k != "temporary"
    }


def test_the_image_holds_a_flat_complete_snapshot(node: Node) -> None:
    container = node.run(*COUNTER)
    container.output.wait_step(3)
    folder = node.path / "flat"
    container.checkpoint_exit(str(folder))

    manifest = json.loads((folder / "diapause.json").read_text())

    assert [p for p in folder.iterdir() if p.is_dir()] == []
    named = {f["name"] for f in manifest["files"]}
    assert {p.name for p in folder.iterdir() if p.suffix == ".img"} == named - {"descriptors.json"}
    assert manifest["software"] is True
    assert manifest["evacuated"] == "driver"
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", manifest["driver"]["digest"])
    assert (folder / "diapause.json").stat().st_mode & 0o077 == 0


def test_restores_leave_no_more_than_containerd_does(current: Node) -> None:
    before = current.footprint()
    container = current.run(*COUNTER)
    container.output.wait_step(3)
    image = container.checkpoint()
    container.remove()
    restored = current.restore(image)
    restored.goes_on()
    restored.remove()
    current.forget(image)

    assert current.footprint() == before
    assert list(Path(current.settings.run_dir / "c").iterdir()) == []
