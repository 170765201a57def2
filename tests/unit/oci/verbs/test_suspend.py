"""`suspend` and `resume`: which containers are the engine's, and which are runc's. The engine is faked."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from diapause.runtime.container import Container
from diapause.runtime.engine import api
from diapause.runtime.linux import pid
from diapause.runtime.oci import driver
from diapause.runtime.oci.call import Call
from diapause.runtime.oci.main import main


class BecameRunc(BaseException):
    """The end of this process."""


@pytest.fixture(autouse=True)
def become(monkeypatch: pytest.MonkeyPatch) -> None:
    def become_runc(call: Call) -> None:
        raise BecameRunc(call.command.argv)

    monkeypatch.setattr(Call, "become_runc", become_runc)
    monkeypatch.setattr(driver, "verify", lambda what, state: None)


def call(*words: str) -> int:
    return main("/usr/bin/runc", ["--root", "/no/such", *words], front="/opt/bin/diapause-runc")


@pytest.fixture
def container() -> Container:
    made = Container("/no/such", "c1")
    made.make_directory()
    me = os.getpid()
    made.store_state(
        {"version": 1, "root": "/no/such", "id": "c1", "pid": me, "start_time": pid.start_time(me)}
    )
    return made


def suspended(container: Container) -> None:
    Path(container.directory, "suspended").write_text("{}", encoding="utf-8")


@pytest.mark.parametrize("light", [False, True])
def test_suspend_of_a_managed_container_goes_to_the_engine(
    container: Container, monkeypatch: pytest.MonkeyPatch, light: bool
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(api, "suspend", lambda request: seen.append(request) or 0)

    assert call("suspend", *(["--light"] if light else []), "c1") == 0

    assert [(request.id, request.light) for request in seen] == [("c1", light)]


def test_suspend_of_any_other_container_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    assert call("suspend", "c9") == 1

    assert "[container-unmanaged]" in capfd.readouterr().err


def test_resume_of_a_suspended_container_goes_to_the_engine(
    container: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(api, "resume", lambda request: seen.append(request.id) or 0)
    suspended(container)

    assert call("resume", "c1") == 0

    assert seen == ["c1"]


def test_resume_of_a_paused_container_is_runcs(container: Container) -> None:
    with pytest.raises(BecameRunc):
        call("resume", "c1")


def test_a_suspended_container_is_not_checkpointed(
    container: Container, capfd: pytest.CaptureFixture[str]
) -> None:
    suspended(container)

    assert call("checkpoint", "--image-path", "/no/image", "c1") == 1

    assert "[container-suspended]" in capfd.readouterr().err


@pytest.mark.parametrize("flag", ["-f", "--force"])
def test_a_delete_by_force_discards_the_memory_first(
    container: Container, monkeypatch: pytest.MonkeyPatch, flag: str
) -> None:
    seen: list[tuple[str, str]] = []
    monkeypatch.setattr(api, "discard_suspended", lambda *names: seen.append(names))
    suspended(container)

    with pytest.raises(BecameRunc):
        call("delete", flag, "c1")

    assert seen == [("/no/such", "c1")]


def test_a_delete_that_runc_will_refuse_keeps_it(
    container: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "discard_suspended", lambda *_: pytest.fail("it is still needed"))
    suspended(container)

    with pytest.raises(BecameRunc):
        call("delete", "c1")
