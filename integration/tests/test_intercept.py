"""Engine `intercept`: device memory changes hands while closed gates hold the programs."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.harness import proc
from integration.harness.bundle import Bundle, RuncError, Runtime
from integration.harness.node import Node
from integration.harness.proc import View
from integration.harness.wait import until
from integration.harness.workloads import COUNTER, FORKED, GPU, MANAGED

GPUD = '[gpu]\nidle-timeout = 5.0\npool = "64MiB"\n'  # a machine of tests is small


@pytest.fixture(autouse=True)
def small_controllers(runtime: Runtime) -> None:
    runtime.settings.add(GPUD)


def started(runtime: Runtime, *workload: str, fault: str = "", named: bool = True) -> Bundle:
    """A container of this engine, asked for by name or left to the default."""
    annotations = {} if named else {"diapause.dev/gpu-enabled": "true"}
    env = {"DIAPAUSE_SOFTGPU_FAULT": fault} if fault else {}
    container = runtime.bundle(
        *workload, engine="intercept" if named else "", env=env, annotations=annotations
    ).run()
    container.output.wait_step(3)
    return container


def document(image: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((image / "diapause.json").read_text())
    return found


def by_the_libraries(image: Path) -> None:
    assert document(image)["evacuated"] == "intercept"


def controllers(runtime: Runtime) -> list[int]:
    """The controllers of this installation."""
    library = f"--libcuda {runtime.base}/"
    return [pid for pid in proc.pids() if library in (c := proc.cmdline(pid)) and "runtime.gpud" in c]


def changes(before: list[View], after: list[View]) -> list[str]:
    """What looks different from outside, device memory aside: it comes and goes while a workload runs."""
    lines = [line for a, b in zip(before, after, strict=True) for line in a.changes(b)]
    return [line for line in lines if "memfd:softgpu-memory" not in line]


def survives(container: Bundle, tmp_path: Path) -> None:
    container.goes_on()
    assert not any(proc.tracer(pid) for pid in container.processes())
    container.checkpoint(tmp_path / "again")
    by_the_libraries(tmp_path / "again")
    container.restore(tmp_path / "again")
    container.goes_on()


@pytest.mark.parametrize("workload", [*GPU.values(), FORKED], ids=[*GPU, "a forked child"])
def test_every_workload_keeps_its_values_over_three_rounds(
    runtime: Runtime, tmp_path: Path, workload: tuple[str, ...]
) -> None:
    container = started(runtime, *workload)
    before = [View.of(pid) for pid in container.processes()]
    for number in range(3):
        image = tmp_path / str(number)
        runtime("pause", container.id)
        container.checkpoint(image, "--leave-running")
        assert container.frozen()
        runtime("resume", container.id)
        container.goes_on()
        container.checkpoint(tmp_path / f"{number}-exit")
        by_the_libraries(image)
        by_the_libraries(tmp_path / f"{number}-exit")

        container.restore(tmp_path / f"{number}-exit")

        container.goes_on()
        after = [View.of(pid) for pid in container.processes()]
        assert changes(before, after) == []


def test_a_poller_with_many_threads_survives_many_rounds(runtime: Runtime, tmp_path: Path) -> None:
    """A thread that polls while the driver checkpoints dies of SIGSEGV: the gates are what keeps it out."""
    container = started(runtime, "/opt/poller", "--mode", "event", "--threads", "64")
    for number in range(20):
        container.checkpoint(tmp_path / "image", "--leave-running")
        by_the_libraries(tmp_path / "image")
        container.goes_on(by=2)
        assert container.status() == "running", f"round {number}"


def test_it_comes_back_under_another_id(runtime: Runtime, tmp_path: Path) -> None:
    container = started(runtime, *COUNTER)
    at = container.output.step()
    container.checkpoint(tmp_path / "image")

    container.restore(tmp_path / "image", id=f"{container.id}-new")

    assert container.goes_on() > at


def test_one_image_serves_several_restores(runtime: Runtime, tmp_path: Path) -> None:
    container = started(runtime, *COUNTER)
    container.checkpoint(tmp_path / "image")
    starts = []
    for _ in range(2):
        container.restore(tmp_path / "image")
        container.goes_on()
        starts.append([line for line in container.output.lines() if line.startswith("step")][:3])
        container.kill_and_delete()

    assert starts[0] == starts[1]


def test_a_container_that_asked_for_any_engine_goes_this_way(runtime: Runtime, tmp_path: Path) -> None:
    container = started(runtime, *COUNTER, named=False)

    container.checkpoint(tmp_path / "image")

    by_the_libraries(tmp_path / "image")
    container.restore(tmp_path / "image")
    container.goes_on()


@pytest.mark.parametrize("frozen", [False, True], ids=["running", "frozen by the client"])
def test_managed_memory_is_refused_before_anything_is_touched(
    runtime: Runtime, tmp_path: Path, frozen: bool
) -> None:
    container = started(runtime, *MANAGED)
    if frozen:
        runtime("pause", container.id)

    with pytest.raises(RuncError, match=r"managed memory .*\[gpu-memory-managed\]"):
        container.checkpoint(tmp_path / "image")

    assert container.frozen() is frozen
    if frozen:
        runtime("resume", container.id)
    container.goes_on()


@pytest.mark.parametrize("frozen", [False, True], ids=["running", "frozen by the client"])
@pytest.mark.parametrize(
    ("fault", "code"),
    [("lock=fail:1", "driver-lock"), ("checkpoint=fail:1", "driver-checkpoint")],
)
def test_a_driver_call_that_fails(
    runtime: Runtime, tmp_path: Path, fault: str, code: str, frozen: bool
) -> None:
    container = started(runtime, *COUNTER, fault=fault)
    if frozen:
        runtime("pause", container.id)

    with pytest.raises(RuncError, match=rf"\[{code}\]"):
        container.checkpoint(tmp_path / "image")

    assert container.frozen() is frozen
    if frozen:
        runtime("resume", container.id)
    survives(container, tmp_path)


def test_a_controller_that_is_kept_warm_starts_with_the_container(runtime: Runtime, tmp_path: Path) -> None:
    for pid in controllers(runtime):
        proc.kill(pid, signal.SIGKILL)
    until(lambda: not controllers(runtime), "end of the controllers")
    for socket in runtime.settings.run_dir.glob("gpud/*/socket"):
        socket.unlink()  # as after a boot
    runtime.settings.configure("idle-timeout = 5.0", "idle-timeout = 0")
    container = started(runtime, *COUNTER)

    until(lambda: controllers(runtime), "a controller")
    running = controllers(runtime)
    container.checkpoint(tmp_path / "image")

    assert controllers(runtime) == running
    by_the_libraries(tmp_path / "image")
    kill_controllers(runtime)


# -- controllers that are killed --------------------------------------------------------------------------


def kill_controllers(runtime: Runtime) -> None:
    victims = controllers(runtime)
    assert victims
    for pid in victims:
        proc.kill(pid, signal.SIGKILL)
    until(lambda: not controllers(runtime), "end of the controllers")


def test_memory_finds_a_new_home_when_its_controller_was_killed(runtime: Runtime, tmp_path: Path) -> None:
    container = started(runtime, *COUNTER)
    container.checkpoint(tmp_path / "1")
    container.restore(tmp_path / "1")
    container.goes_on()

    kill_controllers(runtime)

    container.goes_on()
    survives(container, tmp_path)


def test_a_gpu_without_room_is_an_error_that_leaves_nothing(runtime: Runtime, tmp_path: Path) -> None:
    """After a wait that is bounded; another attempt may find room."""
    container = started(runtime, *COUNTER)
    container.checkpoint(tmp_path / "image")
    kill_controllers(runtime)
    small = {"DIAPAUSE_SOFTGPU_MEMORY": str(4 << 20), "DIAPAUSE_GPU_MEMORY_WAIT": "1"}

    with pytest.raises(RuncError, match=r"\[gpu-memory\]"):
        container.restore(tmp_path / "image", env=small)

    assert container.status() == ""
    assert runtime.settings.registered() == []
    kill_controllers(runtime)
    container.restore(tmp_path / "image")
    container.goes_on()


# -- engines that are killed ------------------------------------------------------------------------------

DUMP = ["launch", "gate", "quiesce", "hand-over", "save", "lock", "residue", "still", "space", "dump"]
RESTORE = ["fetch", "load", "restrict", "reload", "attach", "go"]
SLOW = dict.fromkeys(DUMP[:6], "lock=slow:1") | {"residue": "checkpoint=slow:1"}


def _begun(runtime: Runtime, step: str) -> bool:
    for journal in runtime.settings.run_dir.glob("c/*/journal"):
        try:
            lines = journal.read_text().splitlines()
        except OSError:
            continue
        if any(json.loads(line).get("begin") == step for line in lines):
            return True
    return False


def kill_when(
    runtime: Runtime, running: "subprocess.Popen[str] | subprocess.Popen[bytes]", step: str, *victims: str
) -> None:
    """SIGKILL to the front, and to the engine or the controllers if they are among the victims."""
    until(lambda: running.poll() is not None or _begun(runtime, step), f"step {step}")
    pids = [running.pid] if "front" in victims else []
    if "engine" in victims:
        engines = [p for p in proc.descendants(running.pid) if "runtime" in proc.cmdline(p)]
        pids += [p for p in engines if "cudactl" not in proc.cmdline(p) and "gpud" not in proc.cmdline(p)]
    if "controller" in victims:
        pids += controllers(runtime)
    for pid in pids:
        proc.kill(pid, signal.SIGKILL)
    running.communicate(timeout=60)


def dump(runtime: Runtime, container: Bundle, tmp_path: Path) -> "subprocess.Popen[str]":
    return runtime.start(
        "checkpoint", "--image-path", str(tmp_path / "i"), "--work-path", str(tmp_path), container.id
    )


@pytest.mark.parametrize("step", DUMP)
@pytest.mark.parametrize("frozen", [False, True], ids=["running", "frozen by the client"])
def test_a_killed_dump_is_undone_by_its_engine(
    runtime: Runtime, tmp_path: Path, step: str, frozen: bool
) -> None:
    container = started(runtime, *COUNTER, fault=SLOW.get(step, ""))
    if frozen:
        runtime("pause", container.id)

    kill_when(runtime, dump(runtime, container, tmp_path), step, "front")

    until(lambda: not list(runtime.settings.run_dir.glob("c/*/journal")), "end of the undoing")
    if container.status() == "":  # the kill came when the dump was complete
        container.restore(tmp_path / "i")
    elif frozen:
        assert container.frozen()
        runtime("resume", container.id)
    survives(container, tmp_path)


@pytest.mark.parametrize("step", DUMP[:-1])
def test_a_dump_killed_with_its_engine_is_undone_by_the_next_verb(
    runtime: Runtime, tmp_path: Path, step: str
) -> None:
    container = started(runtime, *COUNTER, fault=SLOW.get(step, ""))
    runtime("pause", container.id)

    kill_when(runtime, dump(runtime, container, tmp_path), step, "front", "engine")
    runtime("resume", container.id)

    assert not list(runtime.settings.run_dir.glob("c/*/journal"))
    survives(container, tmp_path)


@pytest.mark.parametrize("step", DUMP)
def test_a_dump_whose_controller_is_killed_is_undone(runtime: Runtime, tmp_path: Path, step: str) -> None:
    container = started(runtime, *COUNTER, fault=SLOW.get(step, ""))

    kill_when(runtime, dump(runtime, container, tmp_path), step, "controller")

    if container.status() == "":  # the copy was complete
        container.restore(tmp_path / "i")
    survives(container, tmp_path)


@pytest.mark.parametrize("victims", [("front",), ("front", "engine"), ("controller",)], ids="+".join)
@pytest.mark.parametrize("step", RESTORE)
def test_after_a_killed_restore_delete_leaves_nothing(
    runtime: Runtime, tmp_path: Path, step: str, victims: tuple[str, ...]
) -> None:
    container = started(runtime, *COUNTER, fault="restore=slow:1")
    container.checkpoint(tmp_path / "image")
    restore = container.start_restore(tmp_path / "image")

    kill_when(runtime, restore, step, *victims)
    until(lambda: not [p for p in proc.pids() if f"--root {runtime.root} restore" in proc.cmdline(p)],
          "end of the engine")  # fmt: skip
    subprocess.run(runtime.argv("delete", "-f", container.id), env=runtime.env, timeout=60, check=True)

    until(lambda: runtime.settings.registered() == [] or None, "nothing registered")
    container.restore(tmp_path / "image")
    container.goes_on()


# -- suspend and resume -----------------------------------------------------------------------------------


@pytest.mark.parametrize("light", [False, True], ids=["whole", "light"])
def test_a_suspended_container_frees_the_gpu_and_goes_on_where_it_was(runtime: Runtime, light: bool) -> None:
    container = started(runtime, *GPU["two processes"])
    for _ in range(3):
        runtime("suspend", *(["--light"] if light else []), container.id)

        assert container.status() == "paused"
        at = container.output.step()
        with pytest.raises(RuncError, match=r"\[container-suspended\]"):
            container.checkpoint(Path(runtime.base) / "refused")

        runtime("resume", container.id)

        assert container.goes_on() > at


def test_a_suspended_container_outlives_its_controller_and_can_be_deleted(runtime: Runtime) -> None:
    container = started(runtime, *COUNTER)
    runtime("suspend", container.id)
    until(lambda: not controllers(runtime), "end of an idle controller", seconds=30)
    runtime("resume", container.id)
    container.goes_on()
    runtime("suspend", container.id)
    store = Path(runtime.settings.env["DIAPAUSE_STATE_DIR"]) / "snapshots"
    assert [name for name in os.listdir(store) if name.startswith("suspended-")]

    container.kill_and_delete()

    assert [name for name in os.listdir(store) if name.startswith("suspended-")] == []


# -- nothing grows ----------------------------------------------------------------------------------------


def least(count: Callable[[], int]) -> int:
    """The smallest of several looks: a controller opens something for a moment now and then."""
    looks = []
    until(lambda: looks.append(count()) or len(looks) >= 20, "twenty looks")
    return min(looks)


def test_thirty_rounds_grow_nothing(runtime: Runtime, tmp_path: Path) -> None:
    container = started(runtime, *GPU["many allocations"])
    sizes = []
    for number in range(30):
        container.checkpoint(tmp_path / "image", "--leave-running")
        container.goes_on(by=2)
        pid = container.pid()
        if number % 10 == 9:
            (controller,) = controllers(runtime)[:1]
            sizes.append(
                (
                    least(lambda: len(proc.fds(pid))),  # noqa: B023  called at once
                    least(lambda: len(proc.threads(pid))),  # noqa: B023
                    least(lambda: len(proc.fds(controller))),  # noqa: B023
                )
            )
    assert sizes[0][:2] == sizes[1][:2] == sizes[2][:2]
    # It holds what the program has not freed yet, a piece more or less; twenty rounds would be twenty pieces.
    assert max(size[2] for size in sizes) - min(size[2] for size in sizes) <= 2
    assert (
        container.output.steps() == list(range(container.output.step() + 1))[-len(container.output.steps()) :]
    )


def test_files_and_memory_are_of_one_moment(current: Node) -> None:
    """ctr takes the rw layer of the frozen container before its memory: no line may be written in between."""
    container = current.run(*COUNTER[:1], "--interval", "2", engine="intercept")
    container.output.wait_step(50)
    for _ in range(3):
        image = container.checkpoint()
        container.remove()

        container = current.restore(image)

        container.goes_on(by=20)
        steps = container.output.steps()
        assert steps == list(range(1, len(steps) + 1))
        current.forget(image)
