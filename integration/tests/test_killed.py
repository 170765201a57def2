"""kill -9 of diapause-runc, alone or with everything below it, in every phase of a dump and a restore."""

import json
import signal
import subprocess
from pathlib import Path

import pytest

from integration.harness import proc
from integration.harness.bundle import Bundle, Runtime
from integration.harness.wait import until
from integration.harness.workloads import COUNTER

DUMP = ["thaw", "lock", "hold", "evacuate", "seal", "space", "dump"]
RESTORE = ["load", "restrict", "reload", "go"]
# A second more for the call of the driver that a step waits for: the kill comes inside it.
SLOW = {
    "thaw": "lock=slow:1",
    "lock": "lock=slow:1",
    "hold": "checkpoint=slow:1",
    "evacuate": "checkpoint=slow:1",
}


def _begun(runtime: Runtime, step: str) -> bool:
    """Whether a journal says that the step has begun."""
    for journal in runtime.settings.run_dir.glob("c/*/journal"):
        try:
            lines = journal.read_text().splitlines()
        except OSError:
            continue
        if any(json.loads(line).get("begin") == step for line in lines):
            return True
    return False


def kill_when(
    runtime: Runtime,
    running: "subprocess.Popen[str] | subprocess.Popen[bytes]",
    step: str,
    *,
    all_of_it: bool,
) -> None:
    """SIGKILL when the step has begun (or the verb has ended before it); `all_of_it`: the engine as well.

    Not criu and what it runs: a tracer that dies leaves its code in the processes that it was dumping, and no
    runtime could repair that. Nor the helper that is inside a call of the driver: it outlives its callers.
    """
    until(lambda: running.poll() is not None or _begun(runtime, step), f"step {step}")
    victims = [running.pid]
    if all_of_it:
        victims += [p for p in proc.descendants(running.pid) if "diapause.runtime" in proc.cmdline(p)]
    for pid in victims:
        proc.kill(pid, signal.SIGKILL)
    running.communicate(timeout=60)


def settled(runtime: Runtime) -> None:
    """The engine that outlived its caller has done what it had to."""
    base = f"{runtime.base}/"
    until(
        lambda: not [p for p in proc.pids() if base in (c := proc.cmdline(p)) and "checkpoint" in c],
        "end of dump",
    )


def assert_goes_on(container: Bundle, tmp_path: Path) -> None:
    container.goes_on()
    assert not any(proc.state(tid) in "tT" for pid in container.processes() for tid in proc.threads(pid))
    container.checkpoint(tmp_path / "again")
    container.restore(tmp_path / "again")
    container.goes_on()


@pytest.mark.parametrize("frozen", [False, True], ids=["running", "frozen by the client"])
@pytest.mark.parametrize("step", DUMP)
def test_a_killed_dump_is_undone_by_its_engine(
    runtime: Runtime, tmp_path: Path, step: str, frozen: bool
) -> None:
    container = runtime.bundle(*COUNTER, env={"DIAPAUSE_SOFTGPU_FAULT": SLOW.get(step, "")}).run()
    container.output.wait_step(3)
    if frozen:
        runtime("pause", container.id)
    dump = runtime.start(
        "checkpoint", "--image-path", str(tmp_path / "i"), "--work-path", str(tmp_path), container.id
    )

    kill_when(runtime, dump, step, all_of_it=False)

    until(lambda: not list(runtime.settings.run_dir.glob("c/*/journal")), "end of the undoing")
    if container.status() == "":  # the kill came when the dump was complete
        container.restore(tmp_path / "i")
    elif frozen:
        assert container.frozen()
        runtime("resume", container.id)
    assert_goes_on(container, tmp_path)


@pytest.mark.parametrize("step", DUMP[:-1])
def test_a_dump_killed_with_its_engine_is_undone_by_the_next_verb(
    runtime: Runtime, tmp_path: Path, step: str
) -> None:
    """As a client does: it paused the container before, and sends `resume` whatever happened."""
    container = runtime.bundle(*COUNTER, env={"DIAPAUSE_SOFTGPU_FAULT": SLOW.get(step, "")}).run()
    container.output.wait_step(3)
    runtime("pause", container.id)
    dump = runtime.start(
        "checkpoint", "--image-path", str(tmp_path / "i"), "--work-path", str(tmp_path), container.id
    )

    kill_when(runtime, dump, step, all_of_it=True)
    runtime("resume", container.id)

    assert not list(runtime.settings.run_dir.glob("c/*/journal"))
    assert not (tmp_path / "i/diapause.json").exists()
    assert_goes_on(container, tmp_path)


@pytest.mark.parametrize("all_of_it", [False, True], ids=["the front", "engine and all"])
@pytest.mark.parametrize("step", RESTORE)
def test_after_a_killed_restore_delete_leaves_nothing(
    runtime: Runtime, tmp_path: Path, step: str, all_of_it: bool
) -> None:
    before = runtime.footprint()
    container = runtime.bundle(*COUNTER, env={"DIAPAUSE_SOFTGPU_FAULT": "restore=slow:1"}).run()
    container.output.wait_step(3)
    container.checkpoint(tmp_path / "image")
    restore = container.start_restore(tmp_path / "image")

    kill_when(runtime, restore, step, all_of_it=all_of_it)
    until(lambda: _engineless(runtime), "end of the engine")
    subprocess.run(runtime.argv("delete", "-f", container.id), env=runtime.env, timeout=60, check=True)

    until(lambda: runtime.footprint() == before or None, f"a clean footprint, not {runtime.footprint()}")
    container.restore(tmp_path / "image")
    container.goes_on()


@pytest.mark.parametrize("all_of_it", [False, True], ids=["the front", "engine and all"])
def test_a_delete_at_once_deletes_nothing_of_the_rootfs(
    runtime: Runtime, tmp_path: Path, all_of_it: bool
) -> None:
    """While runc restores, the rootfs and what is bound into it are mounted where `delete` removes all."""
    before = runtime.footprint()
    (tmp_path / "volume").mkdir()
    (tmp_path / "volume/precious").write_text("x")
    container = runtime.bundle(*COUNTER)
    mounts = container.spec["mounts"]
    assert isinstance(mounts, list)
    volume = {"destination": "/v", "source": str(tmp_path / "volume"), "type": "bind", "options": ["bind"]}
    container.spec["mounts"] = [*mounts, volume]
    container.write_spec()
    container.run()
    container.output.wait_step(3)
    container.checkpoint(tmp_path / "image")
    container.write_spec()
    files = sorted(container.path.glob("rootfs/**/*"))
    restore = runtime.start("restore", "-d", "--bundle", str(container.path),
                            "--image-path", str(tmp_path / "image"), "--work-path", str(tmp_path),
                            container.id)  # fmt: skip

    until((runtime.root / container.id / "criu-root/opt").exists, "runc's mount")
    kill_when(runtime, restore, "load", all_of_it=all_of_it)
    subprocess.run(runtime.argv("delete", "-f", container.id), env=runtime.env, timeout=60, check=True)

    assert sorted(container.path.glob("rootfs/**/*")) == files
    assert (tmp_path / "volume/precious").exists()
    until(lambda: runtime.footprint() == before or None, f"a clean footprint, not {runtime.footprint()}")
    container.restore(tmp_path / "image")
    container.goes_on()


def _engineless(runtime: Runtime) -> bool:
    return not [p for p in proc.pids() if f"--root {runtime.root} restore" in proc.cmdline(p)]
