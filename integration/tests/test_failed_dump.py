"""A dump that fails at any step leaves the container as it was, and the next one succeeds."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.harness import fakes, proc
from integration.harness.bundle import Bundle, RuncError, Runtime
from integration.harness.wait import until
from integration.harness.workloads import COUNTER, CPU, GPU, MANAGED

FAST = "[driver]\nlock-timeout = 1.0\ncheckpoint-timeout = 2.0\nrestore-timeout = 5.0\n"


def survives(container: Bundle, tmp_path: Path, *, frozen: bool = False) -> None:
    """It is in the freezer state it was in, runs on with right values, and can be saved and restored."""
    assert container.frozen() is frozen
    if frozen:
        container.runtime("resume", container.id)
    assert not any(proc.tracer(pid) for pid in container.processes())
    assert not any(proc.state(tid) in "tT" for pid in container.processes() for tid in proc.threads(pid))
    container.goes_on()
    container.checkpoint(tmp_path / "again")
    container.restore(tmp_path / "again")
    container.goes_on()


def nothing_was_kept(runtime: Runtime, image: Path) -> None:
    """No snapshot that looks complete, no helper process, no journal."""
    assert not (image / "diapause.json").exists()
    assert runtime.footprint()["processes"] == []
    assert not list(runtime.settings.run_dir.glob("c/*/journal"))


@pytest.fixture(params=[False, True], ids=["running", "frozen by the client"])
def frozen(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def started(
    runtime: Runtime, *workload: str, fault: str = "", frozen: bool = False, criu: Path | None = None
) -> Bundle:
    env = {"DIAPAUSE_SOFTGPU_FAULT": fault} if fault else {}
    annotations = {"org.criu.config": str(criu)} if criu else {}
    container = runtime.bundle(*workload, env=env, annotations=annotations).run()
    container.output.wait_step(3)
    if frozen:
        runtime("pause", container.id)
    return container


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("lock=fail:1", "driver-lock"),
        ("lock=hang:1", "driver-hung"),
        ("checkpoint=fail:1", "driver-checkpoint"),
        ("checkpoint=hang:1", "driver-hung"),
    ],
)
def test_a_driver_call_that_fails(
    runtime: Runtime, tmp_path: Path, frozen: bool, fault: str, code: str
) -> None:
    runtime.settings.add(FAST)
    container = started(runtime, *COUNTER, fault=fault, frozen=frozen)

    with pytest.raises(RuncError, match=rf"checkpoint {container.id}: .*\[{code}\]") as failure:
        container.checkpoint(tmp_path / "image")

    assert f"[{code}]" in failure.value.first_line
    nothing_was_kept(runtime, tmp_path / "image")
    survives(container, tmp_path, frozen=frozen)


def test_one_of_two_processes_that_fails(runtime: Runtime, tmp_path: Path) -> None:
    """Both are back, whichever of them it was."""
    container = started(runtime, *GPU["two processes"], fault="checkpoint=fail:1")

    with pytest.raises(RuncError, match=r"\[driver-checkpoint\]"):
        container.checkpoint(tmp_path / "image")

    nothing_was_kept(runtime, tmp_path / "image")
    survives(container, tmp_path)


@pytest.mark.parametrize("name", ["polling events", "polling the context", "64 threads"])
def test_a_failed_dump_of_threads_that_poll(runtime: Runtime, tmp_path: Path, name: str) -> None:
    container = started(runtime, *GPU[name], fault="checkpoint=fail:1")

    with pytest.raises(RuncError, match=r"\[driver-checkpoint\]"):
        container.checkpoint(tmp_path / "image")

    survives(container, tmp_path)


def test_managed_memory_is_refused(runtime: Runtime, tmp_path: Path, frozen: bool) -> None:
    container = started(runtime, *MANAGED, frozen=frozen)

    with pytest.raises(RuncError, match=r"managed memory .*\[driver-not-supported\]"):
        container.checkpoint(tmp_path / "image")

    nothing_was_kept(runtime, tmp_path / "image")
    assert container.frozen() is frozen
    if frozen:
        runtime("resume", container.id)
    container.goes_on()


@pytest.mark.parametrize("workload", [COUNTER, CPU], ids=["counter", "no CUDA at all"])
def test_criu_that_dies(runtime: Runtime, tmp_path: Path, frozen: bool, workload: tuple[str, ...]) -> None:
    container = started(runtime, *workload, frozen=frozen)
    real = runtime.tools.find("criu")
    fake = fakes.failing_criu(tmp_path / "fake", real, request=2)
    runtime.settings.configure(f'path = "{real}"', f'path = "{fake}"')

    with pytest.raises(RuncError, match=r"\[runc-failed\]"):
        container.checkpoint(tmp_path / "image")

    nothing_was_kept(runtime, tmp_path / "image")
    survives(container, tmp_path, frozen=frozen)


@pytest.mark.parametrize("action", ["pre-dump", "post-dump"])
def test_criu_that_fails_on_its_way(runtime: Runtime, tmp_path: Path, frozen: bool, action: str) -> None:
    config = fakes.failing_action(tmp_path, action)
    container = started(runtime, *COUNTER, frozen=frozen, criu=config)

    with pytest.raises(RuncError, match=r"\[criu-failed\]") as failure:
        container.checkpoint(tmp_path / "image")

    nothing_was_kept(runtime, tmp_path / "image")
    log = Path(failure.value.first_line.partition("(log: ")[2].partition(")")[0])
    assert "Dumping FAILED" in log.read_text()  # survives, and the message names it
    config.write_text("")
    survives(container, tmp_path, frozen=frozen)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    folder = fakes.full(tmp_path / "small", "24m")
    yield folder
    fakes.empty(folder)


def test_a_full_disk_is_seen_beforehand(runtime: Runtime, tmp_path: Path, small: Path) -> None:
    container = started(runtime, *COUNTER, "--mib", "64")

    with pytest.raises(RuncError, match=r"needs up to \d+ bytes in .*, free are \d+.*\[no-space\]"):
        container.checkpoint(small / "image")

    nothing_was_kept(runtime, small / "image")
    survives(container, tmp_path)


def test_a_disk_that_fills_up_during_the_dump(runtime: Runtime, tmp_path: Path, small: Path) -> None:
    config, actions = fakes.noting_action(tmp_path)
    container = started(runtime, *COUNTER, "--mib", "8", criu=config)
    dump = runtime.start(
        "checkpoint", "--image-path", str(small / "image"), "--work-path", str(tmp_path), container.id
    )
    until(actions.read_text, "first action")
    subprocess.run(
        ["dd", "if=/dev/zero", f"of={small}/filler", "bs=1M"], check=False, capture_output=True, timeout=60
    )
    (tmp_path / "go").touch()

    _, stderr = dump.communicate(timeout=60)

    assert dump.returncode == 1
    assert "[criu-failed]" in stderr.splitlines()[0]
    nothing_was_kept(runtime, small / "image")
    survives(container, tmp_path)


def test_a_driver_restore_that_fails_after_a_dump_says_so(runtime: Runtime, tmp_path: Path) -> None:
    """--leave-running: the process is lost, as on hardware; the snapshot is not."""
    container = started(runtime, *COUNTER, fault="restore=fail:1")

    with pytest.raises(
        RuncError, match=r"the snapshot is complete.*restore it from the snapshot.*\[resume-failed\]"
    ):
        container.checkpoint(tmp_path / "image", "--leave-running")

    runtime("delete", "-f", container.id)
    assert (tmp_path / "image/diapause.json").exists()
    assert runtime.settings.registered() == []


def test_a_second_checkpoint_while_one_runs_is_refused(runtime: Runtime, tmp_path: Path) -> None:
    config, actions = fakes.noting_action(tmp_path)
    container = started(runtime, *COUNTER, criu=config)
    first = runtime.start(
        "checkpoint", "--image-path", str(tmp_path / "1"), "--work-path", str(tmp_path / "w"), container.id
    )
    until(actions.read_text, "first action")

    with pytest.raises(RuncError, match=r"\[container-busy\]"):
        container.checkpoint(tmp_path / "2")

    (tmp_path / "go").touch()
    first.communicate(timeout=30)
    assert first.returncode == 0
    assert not (tmp_path / "2" / "diapause.json").exists()
    container.restore(tmp_path / "1")
    container.goes_on()


def test_two_containers_at_once(runtime: Runtime, tmp_path: Path) -> None:
    containers = [started(runtime, *COUNTER), started(runtime, *GPU["polling events"])]
    dumps = [
        runtime.start(
            "checkpoint", "--image-path", str(tmp_path / c.id), "--work-path", str(tmp_path / "w"), c.id
        )
        for c in containers
    ]
    for dump in dumps:
        dump.communicate(timeout=60)
        assert dump.returncode == 0
    for container in containers:
        container.restore(tmp_path / container.id)
    for container in containers:
        container.goes_on()
