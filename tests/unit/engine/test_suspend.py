"""Suspend and resume: the GPU is free in between, and whatever fails leaves one of the two states."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from diapause.runtime.engine import api, control, plan, suspended
from diapause.runtime.engine.control import MemoryFlag
from diapause.runtime.engine.request import Request, SuspendRequest
from diapause.runtime.errors import FailedPrecondition, Internal, Unavailable
from diapause.runtime.linux.deadline import Deadline
from diapause.runtime.store.local import Local

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")

SIZES = ("4096", "2097152")


def suspend(host: Any, *, light: bool = False) -> int:
    return api.suspend(SuspendRequest(**host.request(image_path="", work_path=""), light=light))


def resume(host: Any) -> int:
    return api.resume(Request(**host.request(image_path="", work_path="")))


def store(host: Any) -> list[str]:
    return [found.name for found in Local.of(host.request()["settings"]).all()]


def runs(host: Any, pid: int) -> None:
    page = control.find(pid)
    assert page is not None
    assert page.gate == 0
    fd = os.pidfd_open(pid)
    with control.connect(pid, fd, Deadline.after(5)) as channel:
        assert all(one.flags & MemoryFlag.ATTACHED for one in channel.memory(Deadline.after(5)))
    os.close(fd)
    assert host.goes_on(pid)
    assert host.driver_state(pid) == 0
    assert not host.frozen
    assert not host.journaled
    assert not suspended.exists(host.container)
    assert store(host) == []


def is_suspended(host: Any, pid: int, *, light: bool = False) -> None:
    page = control.find(pid)
    assert page is not None
    assert page.gate == 2
    assert host.driver_state(pid) == (0 if light else 2)
    assert host.frozen
    assert not host.journaled
    assert suspended.exists(host.container)
    assert len(store(host)) == 1


@pytest.mark.parametrize("light", [False, True])
@pytest.mark.parametrize("frozen", [False, True])
def test_there_and_back_twice(engine_host: Any, light: bool, frozen: bool) -> None:
    pid = engine_host.start_library(*SIZES)
    engine_host.freezer(frozen=frozen)
    for _ in range(2):
        assert suspend(engine_host, light=light) == 0

        is_suspended(engine_host, pid, light=light)
        assert engine_host.gpud_calls[-1] == "forget"

        assert resume(engine_host) == 0

        runs(engine_host, pid)
    assert engine_host.driver_calls == ([] if light else ["lock", "checkpoint", "restore", "unlock"] * 2)


def test_a_suspended_container_is_not_suspended_again(engine_host: Any) -> None:
    pid = engine_host.start_library(*SIZES)
    suspend(engine_host)

    with pytest.raises(FailedPrecondition) as caught:
        suspend(engine_host)

    assert caught.value.code == "container-suspended"
    is_suspended(engine_host, pid)


def test_a_container_whose_memory_cannot_change_hands_is_left_alone(engine_host: Any) -> None:
    pid = engine_host.start_library("--old", *SIZES)

    with pytest.raises(FailedPrecondition) as caught:
        suspend(engine_host)

    assert caught.value.code == "suspend-unsupported"
    assert engine_host.goes_on(pid)
    assert not engine_host.frozen


@pytest.mark.parametrize("op", ["take", "save", "wait"])
def test_a_suspension_that_fails_is_undone(engine_host: Any, op: str) -> None:
    pid = engine_host.start_library(*SIZES)
    engine_host.gpud_fails(f"{op} fail")

    with pytest.raises(Unavailable):
        suspend(engine_host)

    runs(engine_host, pid)


@pytest.mark.parametrize("fault", ["load fail", "wait fail", "give die"])
def test_a_resumption_that_fails_leaves_it_suspended(engine_host: Any, fault: str) -> None:
    pid = engine_host.start_library(*SIZES)
    suspend(engine_host)
    engine_host.gpud_fails(fault)

    with pytest.raises(Unavailable):
        resume(engine_host)

    assert engine_host.frozen
    assert suspended.exists(engine_host.container)
    if "die" in fault:
        engine_host.start_gpud()
    assert resume(engine_host) == 0
    runs(engine_host, pid)


@pytest.mark.parametrize("step", ["quiesce", "hand-over", "save", "residue", "park", "still"])
def test_an_engine_that_is_killed_leaves_one_of_the_two_states(
    engine_host: Any, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    pid = engine_host.start_library(*SIZES)
    real = plan.Plan._timed

    def timed(self: plan.Plan, name: str, call: Any) -> None:
        real(self, name, call)
        if name == step:
            os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as killing:
        killing.setattr(plan.Plan, "_timed", timed)
        if step == "park":  # the point of no return
            assert suspend(engine_host) == 0
        else:
            with pytest.raises(Internal):
                suspend(engine_host)

    if step == "park":
        is_suspended(engine_host, pid)
        assert resume(engine_host) == 0
    runs(engine_host, pid)


def test_a_resumption_that_is_killed_is_completed(engine_host: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pid = engine_host.start_library(*SIZES)
    suspend(engine_host)
    with monkeypatch.context() as killing:
        killing.setattr(control.Channel, "attach", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        with pytest.raises(Internal):
            resume(engine_host)
    assert engine_host.journaled

    engine_host.recover()

    runs(engine_host, pid)
