"""Which controllers a new container starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from diapause.runtime.config import Config
from diapause.runtime.gpud import names, start
from diapause.runtime.oci import warm

GPU = "GPU-00000000-1111-2222-3333-444444444444"


def state(**changes: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "engine": "intercept",
        "software": True,
        "driver": {"libcuda": {"path": "/x/libcuda.so.1"}},
    }
    return {**made, "devices": [], **changes}


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    calls: list[tuple[str, str]] = []
    monkeypatch.setattr(start, "begin", lambda gpu, libcuda: calls.append((gpu, libcuda)))
    return calls


def config(idle: float) -> Config:
    made = Config()
    made.gpu_idle_timeout = idle
    return made


def test_one_that_is_kept_warm_starts_with_the_container(started: list[tuple[str, str]]) -> None:
    warm.up(state(), config(0))

    assert started == [(warm.SOFTWARE, "/x/libcuda.so.1")]


def test_one_that_runs_is_left_alone(started: list[tuple[str, str]]) -> None:
    path = Path(names.socket_path(warm.SOFTWARE))
    path.parent.mkdir(parents=True)
    path.touch()

    warm.up(state(), config(0))

    assert started == []


@pytest.mark.parametrize(("engine", "idle"), [("driver", 0), ("intercept", 60.0)])
def test_any_other_waits_for_the_first_checkpoint(
    started: list[tuple[str, str]], engine: str, idle: float
) -> None:
    warm.up(state(engine=engine), config(idle))

    assert started == []


def test_a_controller_that_cannot_start_stops_no_container(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(gpu: str, libcuda: str) -> None:
        raise OSError(13, "permission denied")

    monkeypatch.setattr(start, "begin", fail)

    warm.up(state(), config(0))


def test_a_real_gpu_is_known_by_its_minor(tmp_path: Path) -> None:
    folder = tmp_path / "gpus" / "0000:01:00.0"
    folder.mkdir(parents=True)
    (folder / "information").write_text(f"Model: \t NVIDIA\nGPU UUID: \t {GPU}\nDevice Minor: \t 3\n")
    devices = [{"path": f"/dev/{name}"} for name in ("nvidiactl", "nvidia3", "nvidia7", "nvidia-uvm")]

    assert warm.gpus(state(software=False, devices=devices), str(tmp_path)) == [GPU]
