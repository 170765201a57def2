"""Driver calls through a helper: in parallel, bounded, and hung ones given up."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from diapause.runtime.engine.driver.calls import Cudactl, Hung
from diapause.runtime.engine.watch import Watch
from diapause.runtime.errors import FailedPrecondition
from diapause.runtime.linux.deadline import Deadline

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")

FAKE = Path(__file__).parents[3] / "fakes" / "engine_cudactl"


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a fake driver that knows the processes 7 and 8."""
    monkeypatch.setenv("DIAPAUSE_NATIVE_DIR", str(tmp_path))
    (tmp_path / "bin").mkdir()
    shutil.copy2(FAKE, tmp_path / "bin" / "diapause-cudactl")
    (tmp_path / "libcuda.so.1").write_text("")
    for pid in (7, 8):
        (tmp_path / f"state-{pid}").write_text("0")
    return tmp_path


@pytest.fixture
def watch() -> Iterator[Watch]:
    with Watch("test c1") as watch:
        yield watch


def soon() -> Deadline:
    return Deadline.after(10)


def test_calls_are_answered_by_process(driver: Path, watch: Watch) -> None:
    calls = Cudactl(str(driver / "libcuda.so.1"), watch)

    locked = calls.call("lock", [7, 8], soon(), argument=1000)
    states = calls.call("state", [7, 8, 9], soon())
    calls.close()

    assert {pid: answer.result for pid, answer in locked.items()} == {7: 0, 8: 0}
    assert {pid: (answer.result, answer.value) for pid, answer in states.items()} == {
        7: (0, 1),
        8: (0, 1),
        9: (1, 0),
    }


def test_no_process_needs_no_answer(driver: Path, watch: Watch) -> None:
    calls = Cudactl(str(driver / "libcuda.so.1"), watch)

    assert calls.call("lock", [], soon()) == {}
    calls.close()


def test_a_hung_call_is_given_up_and_the_next_goes_to_a_fresh_helper(driver: Path, watch: Watch) -> None:
    (driver / "faults").write_text("lock hang")
    calls = Cudactl(str(driver / "libcuda.so.1"), watch)
    calls.ready(soon())

    with pytest.raises(Hung) as caught:
        calls.call("lock", [7, 8], Deadline.after(0.5))
    assert caught.value.pids == [7]

    assert calls.call("state", [7], soon())[7].value == 0
    calls.close()


def test_a_library_that_cannot_be_loaded_is_named(driver: Path, watch: Watch) -> None:
    calls = Cudactl(str(driver / "none.so"), watch)

    with pytest.raises(FailedPrecondition, match=r"none\.so: cannot open shared object file"):
        calls.ready(soon())
    calls.close()


def test_a_driver_without_a_device_is_named_by_its_error(driver: Path, watch: Watch) -> None:
    (driver / "faults").write_text("init 100")
    calls = Cudactl(str(driver / "libcuda.so.1"), watch)

    with pytest.raises(FailedPrecondition, match=r"cuInit failed with CUDA_ERROR_NO_DEVICE \(100\)"):
        calls.ready(soon())
    calls.close()


def test_a_helper_that_dies_is_noticed(driver: Path, watch: Watch) -> None:
    (driver / "bin" / "diapause-cudactl").write_text("#!/bin/sh\nexit 3\n")
    calls = Cudactl(str(driver / "libcuda.so.1"), watch)

    with pytest.raises(FailedPrecondition, match="ended without a word"):
        calls.ready(soon())
    calls.close()


def test_the_helper_gets_no_environment_of_ours(
    driver: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("LD_PRELOAD_TEST", "x")
    (driver / "bin" / "diapause-cudactl").write_text(f"#!/bin/sh\nenv > {driver}/env\necho ready 0 1\n")
    calls = Cudactl(str(driver / "libcuda.so.1"), watch)
    calls.ready(soon())
    calls.close()

    names = {line.partition("=")[0] for line in (driver / "env").read_text().splitlines()}
    assert names - {"PWD", "SHLVL", "_", "OLDPWD"} == {"PATH"}
    assert os.environ["LD_PRELOAD_TEST"] == "x"
