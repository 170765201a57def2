"""Programs that do what a checkpoint would rather not meet: it works, or it is refused and they go on."""

from pathlib import Path

import pytest

from integration.harness import proc
from integration.harness.bundle import Bundle, RuncError, Runtime

HOSTILE = ("/opt/hostile", "--interval", "20", "--mode")


def started(runtime: Runtime, mode: str, *words: str, engine: str = "driver", cap: str = "") -> Bundle:
    container = runtime.bundle(*HOSTILE, mode, *words, engine=engine)
    process = container.spec["process"]
    assert isinstance(process, dict)
    for names in process["capabilities"].values():
        names.extend([cap] if cap else [])
    container.write_spec()
    container.run().output.wait_step(2)
    return container


def there_and_back(container: Bundle, tmp_path: Path) -> None:
    container.checkpoint(tmp_path / "running", "--leave-running")
    container.goes_on()
    container.checkpoint(tmp_path / "image")
    container.restore(tmp_path / "image")
    container.goes_on()
    assert not any(proc.state(tid) in ("t", "T") for p in container.processes() for tid in proc.threads(p))


@pytest.mark.parametrize("engine", ["driver", "intercept"])
@pytest.mark.parametrize(
    "mode", ["block-all", "close-all", "exec-storm", "fork-storm", "thread-storm", "undumpable"]
)
def test_it_is_saved_all_the_same(runtime: Runtime, tmp_path: Path, mode: str, engine: str) -> None:
    there_and_back(started(runtime, mode, engine=engine), tmp_path)


@pytest.mark.parametrize(("mode", "count"), [("zombies", 200), ("processes", 200), ("pages", 1)])
def test_many_of_something(runtime: Runtime, tmp_path: Path, mode: str, count: int) -> None:
    there_and_back(started(runtime, mode, "--count", str(count)), tmp_path)


@pytest.mark.parametrize(
    ("mode", "cap", "code"),
    [
        ("traced", "CAP_SYS_PTRACE", "process-traced"),
        ("pid-namespace", "CAP_SYS_ADMIN", "criu-failed"),
        ("vfork-long", "", "gpu-process-unsupported"),
    ],
)
def test_it_is_refused_and_goes_on(runtime: Runtime, tmp_path: Path, mode: str, cap: str, code: str) -> None:
    container = started(runtime, mode, cap=cap)

    with pytest.raises(RuncError, match=rf"\[{code}\]"):
        container.checkpoint(tmp_path / "image")

    container.goes_on()
    assert not list(runtime.settings.run_dir.glob("c/*/journal"))


@pytest.mark.xfail(
    strict=True, reason="CRIU stops what it restores with a signal, and we continue it with one"
)
def test_a_restore_sends_no_signal_that_a_handler_sees(runtime: Runtime, tmp_path: Path) -> None:
    container = started(runtime, "signals")
    container.checkpoint(tmp_path / "image")
    container.restore(tmp_path / "image")
    container.goes_on()
