"""Journals, and the verbs that go to the engine. The engine itself is faked."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from diapause.runtime.container import Container
from diapause.runtime.engine import api
from diapause.runtime.errors import Internal, Unavailable
from diapause.runtime.linux import pid
from diapause.runtime.oci.call import Call
from diapause.runtime.oci.main import main
from diapause.runtime.oci.verbs import passthrough


class BecameRunc(BaseException):
    """The end of this process."""


@pytest.fixture(autouse=True)
def become(monkeypatch: pytest.MonkeyPatch) -> None:
    def become_runc(call: Call) -> None:
        raise BecameRunc(call.runc, call.command.argv)

    monkeypatch.setattr(Call, "become_runc", become_runc)


def call(*words: str) -> int:
    return main("/usr/bin/runc", ["--root", "/no/such", *words], front="/opt/bin/diapause-runc")


def journal(container_id: str = "c1") -> Container:
    container = Container("/no/such", container_id)
    container.make_directory()
    Path(container.directory, "journal").write_text("", encoding="utf-8")
    return container


@pytest.mark.parametrize("verb", ["state", "resume", "kill", "delete", "exec", "start", "pause"])
def test_a_journal_is_replayed_before_runc_goes_on(monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    replayed: list[Any] = []
    monkeypatch.setattr(api, "recover", lambda *names: replayed.append(names))
    journal()

    with pytest.raises(BecameRunc) as caught:
        call(verb, "c1")

    assert replayed == [("/no/such", "c1")]
    assert caught.value.args == ("/usr/bin/runc", ["--root", "/no/such", verb, "c1"])


def test_the_journal_of_another_container_is_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "recover", lambda *_: pytest.fail("not this one's"))
    journal("c2")

    with pytest.raises(BecameRunc):
        call("state", "c1")


def test_while_an_engine_works_runc_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    def recover(*_: str) -> None:
        raise Unavailable("container-busy", "container c1", "held")

    monkeypatch.setattr(api, "recover", recover)
    journal()

    with pytest.raises(BecameRunc):
        call("resume", "c1")


@pytest.mark.parametrize(
    ("verb", "goes_on"), [("resume", False), ("start", False), ("delete", True), ("kill", True)]
)
def test_a_failed_recovery_keeps_the_container_from_running_but_not_from_ending(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], verb: str, goes_on: bool
) -> None:
    def recover(*_: str) -> None:
        raise Internal("restore-failed", "recover c1", "the driver said 999")

    monkeypatch.setattr(api, "recover", recover)
    journal()

    if goes_on:
        with pytest.raises(BecameRunc):
            call(verb, "c1")
    else:
        assert call(verb, "c1") == 1
        assert "the driver said 999" in capfd.readouterr().err


class TestDeleteDuringARestore:
    """runc would delete files of the rootfs through the mounts that a restore has for a while."""

    def test_it_waits_for_the_engine(self, monkeypatch: pytest.MonkeyPatch) -> None:
        container = journal()
        held = container.lock()
        recoveries: list[str] = []

        def recover(*_: str) -> None:
            recoveries.append("")
            if len(recoveries) == 1:
                raise Unavailable("container-busy", "container c1", "held")

        def slept(_: float) -> None:
            held.close()

        monkeypatch.setattr(api, "recover", recover)
        monkeypatch.setattr(api, "is_restoring", lambda *_: True)
        monkeypatch.setattr(time, "sleep", slept)

        with pytest.raises(BecameRunc):
            call("delete", "--force", "c1")

        assert len(recoveries) == 2

    def test_it_goes_on_when_the_engine_left_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        container = journal()
        self.busy(monkeypatch, restoring=True)
        monkeypatch.setattr(time, "sleep", lambda _: container.forget())
        with container.lock(), pytest.raises(BecameRunc):
            call("delete", "--force", "c1")

    def test_it_fails_when_the_engine_does_not_end(
        self, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        container = journal()
        self.busy(monkeypatch, restoring=True)
        monkeypatch.setattr(passthrough, "RESTORE", 0)
        with container.lock():
            assert call("delete", "--force", "c1") == 1
        assert "[container-busy]" in capfd.readouterr().err

    def test_an_engine_that_checkpoints_is_runcs_affair(self, monkeypatch: pytest.MonkeyPatch) -> None:
        container = journal()
        self.busy(monkeypatch, restoring=False)
        with container.lock(), pytest.raises(BecameRunc):
            call("delete", "--force", "c1")

    def test_it_fails_when_a_recovery_could_not_take_the_mounts_away(
        self, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        def recover(*_: str) -> None:
            raise OSError(16, "Device or resource busy", "/r/c1/criu-root")

        journal()
        monkeypatch.setattr(api, "recover", recover)
        monkeypatch.setattr(api, "is_halfway", lambda *_: True)

        assert call("delete", "--force", "c1") == 1

        assert "/r/c1/criu-root" in capfd.readouterr().err

    def busy(self, monkeypatch: pytest.MonkeyPatch, *, restoring: bool) -> None:
        def recover(*_: str) -> None:
            raise Unavailable("container-busy", "container c1", "held")

        monkeypatch.setattr(api, "recover", recover)
        monkeypatch.setattr(api, "is_restoring", lambda *_: restoring)


class TestCheckpoint:
    def test_an_unmanaged_container_goes_to_runc(self) -> None:
        with pytest.raises(BecameRunc):
            call("checkpoint", "--image-path", "/i", "c1")

    @pytest.mark.parametrize("flag", ["--pre-dump", "--page-server=1.2.3.4:5", "--help"])
    def test_what_only_looks_goes_to_runc(self, flag: str) -> None:
        self.manage()
        with pytest.raises(BecameRunc):
            call("checkpoint", flag, "c1")

    def test_a_managed_container_goes_to_the_engine(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        state = self.manage()
        monkeypatch.chdir(tmp_path)
        requests: list[Any] = []

        def record(request: Any) -> int:
            requests.append(request)
            return 0

        monkeypatch.setattr(api, "checkpoint", record)
        monkeypatch.setenv("DIAPAUSE_CRIU_NETWORK_LOCK", "skip")
        monkeypatch.setenv("DIAPAUSE_LOG_LEVEL", "warning")
        words = [
            "--image-path",
            "image",
            "--work-path=/w",
            "--leave-running",
            "--file-locks",
            "-tcp-established",
            "c1",
        ]

        status = main(
            "/usr/bin/runc",
            ["--root", "/no/such", "--log", "l", "--log-format", "json", "checkpoint", *words],
            front="/opt/bin/diapause-runc",
        )

        (request,) = requests
        assert status == 0
        assert (request.runc, request.root, request.id) == ("/usr/bin/runc", "/no/such", "c1")
        assert list(request.global_args) == ["--root", "/no/such", "--log", "l", "--log-format", "json"]
        assert list(request.verb_args) == words
        assert (request.image_path, request.work_path) == (f"{tmp_path}/image", "/w")
        assert (request.log, request.log_format) == (f"{tmp_path}/l", "json")
        assert request.leave_running
        assert request.file_locks
        assert request.tcp_established
        assert not request.shell_job
        assert request.settings.network_lock == "skip"
        assert request.settings.log_level == "warning"
        assert request.state == state

    @pytest.mark.parametrize("registered", [{"pid": None, "start_time": None}, {"start_time": 1}])
    def test_a_leftover_state_makes_no_container_a_managed_one(self, registered: dict[str, Any]) -> None:
        self.manage(**registered)
        with pytest.raises(BecameRunc):
            call("checkpoint", "--image-path", "/i", "c1")

    def manage(self, **registered: Any) -> dict[str, Any]:
        container = Container("/no/such", "c1")
        container.make_directory()
        state = {"version": 1, "root": "/no/such", "id": "c1", "engine": "driver"}
        state |= {"pid": os.getpid(), "start_time": pid.start_time(os.getpid()), **registered}
        container.store_state(state)
        return state
