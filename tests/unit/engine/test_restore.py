"""Restore: the container comes back whole, or nothing of it is left."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from diapause.runtime.engine import plan, processes
from diapause.runtime.engine.steps import load
from diapause.runtime.errors import (
    AlreadyExists,
    DiapauseError,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    NotFound,
)
from diapause.runtime.store import manifest, snapshot

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


@pytest.fixture
def host(engine_host: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A host with the snapshot of a container that has ended. Its process sees itself as number 1."""
    engine_host.start()
    engine_host.checkpoint()
    engine_host.process.wait()
    change(engine_host, lambda raw: raw["processes"][0].update(pid=1))
    monkeypatch.setattr(processes, "by_inner_pid", lambda _, init: {1: init})
    (engine_host.driver / "calls").unlink()
    (engine_host.root / "calls").unlink()
    return engine_host


def change(host: Any, edit: Any) -> None:
    """Write the manifest anew, with a digest that fits."""
    raw = json.loads((host.image / "diapause.json").read_text())
    edit(raw)
    (host.image / "diapause.json").write_bytes(manifest.Manifest(raw).encode())


def nothing_is_left(host: Any, code: str, kind: type[DiapauseError]) -> DiapauseError:
    with pytest.raises(kind) as caught:
        host.restore()
    assert caught.value.code == code
    assert not os.path.exists(host.container.directory)
    assert not os.path.exists(host.root / "c1" / "state.json")
    for pid in host.cgroup.joinpath("cgroup.procs").read_text().split():
        assert not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text().split()
    return caught.value


def test_a_container_comes_back_and_runs(host: Any) -> None:
    assert host.restore() == 0

    assert host.driver_calls == ["restore", "unlock"]
    assert host.driver_state(host.pid) == 0
    assert host.goes_on(host.pid)
    assert not host.journaled
    assert (Path(host.container.directory) / "state.json").exists()


def test_a_container_without_gpu_processes_comes_back_without_a_driver(host: Any) -> None:
    change(host, lambda raw: (raw["processes"][0].update(gpu=False), raw.update(driver=None)))

    assert host.restore() == 0

    assert host.driver_calls == []
    assert host.goes_on(host.pid)


def test_a_process_that_was_stopped_stays_so(host: Any) -> None:
    change(host, lambda raw: raw["processes"][0].update(stopped=True))

    assert host.restore() == 0

    assert "T (stopped)" in Path(f"/proc/{host.pid}/status").read_text()


def test_remembered_flags_are_applied_unless_given(host: Any) -> None:
    change(host, lambda raw: raw.update(flags=["tcp-established", "file-locks"]))

    host.restore(flags=["--file-locks"], file_locks=True)

    call = host.runc_calls[0]
    assert call[call.index("restore") + 1] == "--tcp-established"
    assert call.count("--file-locks") == 1


def test_criu_leaves_every_thread_stopped(host: Any) -> None:
    host.restore()

    config = (Path(host.container.directory) / "criu.conf").read_text().split("\n")
    assert "leave-stopped" in config
    assert not any(line.startswith("action-script") for line in config)


def test_without_detach_the_exit_status_is_the_containers(host: Any) -> None:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = host.restore(detach=False)
        os.write(write, str(status).encode())
        os._exit(0)
    pid_file = Path(host.container.directory) / "restored.pid"
    for _ in range(500):
        if pid_file.exists() and host.driver_calls == ["restore", "unlock"] and not host.journaled:
            break
        signal.sigtimedwait([], 0.01)
    assert host.goes_on(host.pid)

    os.kill(host.pid, signal.SIGKILL)

    assert os.read(read, 16) == b"137"
    os.waitpid(pid, 0)


def test_a_runc_that_refuses_is_quoted(host: Any, tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    log.write_text('{"level":"error","msg":"an earlier one"}\n')
    host.fails("refuse")

    with pytest.raises(Internal, match="restore c1: runc: container's cgroup is not empty") as caught:
        host.restore(
            log=str(log), log_format="json", global_args=["--root", str(host.root), "--log", str(log)]
        )

    assert caught.value.code == "runc-failed"


@pytest.mark.parametrize("phase", ["restore", "restored"])
def test_a_criu_that_fails_leaves_nothing_but_its_log(host: Any, phase: str) -> None:
    host.fails(phase)

    error = nothing_is_left(host, "criu-failed", Internal)

    assert Path(error.log).name == "restore.log"
    assert "odd" in Path(error.log).read_text()
    assert host.runc_calls[-1][-3:] == ["delete", "--force", "c1"]


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("restore fail", "driver-restore"),
        ("unlock fail", "driver-unlock"),
        ("restore hang", "driver-hung"),
    ],
)
def test_a_driver_that_fails_leaves_nothing(host: Any, fault: str, code: str) -> None:
    host.driver_fails(fault)

    nothing_is_left(host, code, Internal)


def test_a_process_that_did_not_come_back_leaves_nothing(host: Any) -> None:
    change(host, lambda raw: raw["processes"].append({"pid": 9, "comm": "w", "gpu": True, "stopped": False}))

    error = nothing_is_left(host, "process-missing", Internal)

    assert "process 9 (w)" in str(error)


def test_a_process_whose_gpu_state_is_not_there_leaves_nothing(host: Any) -> None:
    (host.root / "on-restore").write_text("")

    nothing_is_left(host, "gpu-process-not-restored", Internal)


def test_a_large_file_with_a_wrong_digest_is_found_before_anything_runs(
    host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from diapause.runtime.engine import restore

    monkeypatch.setattr(restore, "_SMALL", 0)
    (host.image / "pages-1.img").write_text("x" * (host.image / "pages-1.img").stat().st_size)

    nothing_is_left(host, "snapshot-file-digest", InvalidArgument)

    assert any("restore" in call for call in host.runc_calls)


BEFORE_ANYTHING = {
    "snapshot-file-digest": lambda host: (host.image / "inventory.img").write_text("y" * 1300),
    "snapshot-short-file": lambda host: os.truncate(host.image / "pages-1.img", 3),
    "snapshot-incomplete": lambda host: (host.image / "diapause.json").unlink(),
    "snapshot-file-missing": lambda host: (host.image / "inventory.img").unlink(),
    "snapshot-version": lambda host: change(host, lambda raw: raw.update(version=7)),
    "snapshot-feature": lambda host: change(host, lambda raw: raw["features"].update(required=["x"])),
    "driver-differs": lambda host: change(host, lambda raw: raw["driver"].update(version="999")),
    "software-differs": lambda host: change(host, lambda raw: raw.update(software=False)),
    "library-differs": lambda host: change(host, lambda raw: raw.update(library={"digest": "sha256:00"})),
    "libcuda-target-missing": lambda host: change(
        host, lambda raw: raw.update(targets=["/opt/libcuda.so.1"])
    ),
    "criu-too-old": lambda host: host.criu("4.1"),
    "criu-missing": lambda host: (host.bin / "criu").unlink(),
}


@pytest.mark.parametrize("code", BEFORE_ANYTHING)
def test_what_cannot_work_is_refused_before_anything_starts(host: Any, code: str) -> None:
    BEFORE_ANYTHING[code](host)

    error = nothing_is_left(host, code, DiapauseError)

    assert error.todo
    assert host.runc_calls == []


def test_an_empty_and_a_missing_directory_have_their_own_errors(host: Any, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    with pytest.raises(NotFound, match="the directory is empty"):
        host.restore(image_path=str(tmp_path / "empty"))
    with pytest.raises(NotFound, match="no such directory"):
        host.restore(image_path=str(tmp_path / "none"))


def test_a_snapshot_with_a_gpu_needs_a_container_with_one(host: Any) -> None:
    with pytest.raises(FailedPrecondition) as caught:
        host.restore(state={**host.state, "devices": []})

    assert caught.value.code == "gpu-not-requested"


def test_an_existing_container_is_never_touched(host: Any) -> None:
    host.restore()
    pid = host.pid

    with pytest.raises(AlreadyExists) as caught:
        host.restore()

    assert caught.value.code == "container-exists"
    assert host.goes_on(pid)
    assert os.path.exists(host.container.directory)


@pytest.mark.parametrize("who", ["engine", "both"])
@pytest.mark.parametrize("step", ["load", "reload"])
def test_a_killed_engine_leaves_nothing(
    host: Any, monkeypatch: pytest.MonkeyPatch, step: str, who: str
) -> None:
    real = plan.Plan._timed

    def timed(self: plan.Plan, name: str, call: Any) -> None:
        real(self, name, call)
        if name == step:
            if who == "both":
                os.kill(os.getppid(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(plan.Plan, "_timed", timed)
    if who == "engine":
        nothing_is_left(host, "engine-died", Internal)
        return
    pid = os.fork()
    if pid == 0:
        host.restore()
        os._exit(1)
    os.waitpid(pid, 0)
    for _ in range(200):
        try:
            host.recover()
            break
        except DiapauseError:  # the engine has not ended yet
            signal.sigtimedwait([], 0.02)
    assert not os.path.exists(host.container.directory)
    assert not (host.root / "c1" / "state.json").exists()


def test_an_engine_killed_at_its_last_step_is_completed(host: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = plan.Plan._timed

    def timed(self: plan.Plan, name: str, call: Any) -> None:
        if name == "go":
            os.kill(os.getpid(), signal.SIGKILL)
        real(self, name, call)

    monkeypatch.setattr(plan.Plan, "_timed", timed)

    assert host.restore() == 0

    assert host.goes_on(host.pid)
    assert not host.journaled


def test_the_pid_file_is_seen_when_it_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    path.write_text("1")
    before = load._identity(str(path))
    (tmp_path / "new").write_text("1")
    (tmp_path / "new").rename(path)

    assert load._identity(str(path)) not in (None, before)
    assert load._identity(str(tmp_path / "none")) is None


def test_a_snapshot_survives_its_restore(host: Any) -> None:
    host.restore()

    snapshot.verify(str(host.image))
