import json
import os
from pathlib import Path

import pytest

from diapause.runtime.errors import Unavailable
from diapause.runtime.oci import args, report


def test_an_error_of_ours_is_its_own_message(host: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = args.parse(["--log", str(host / "log"), "--log-format", "json", "create", "c1"])
    error = Unavailable("container-busy", "container c1", "held\nby another", "try again")

    assert report.failure(command, error) == 1

    assert capfd.readouterr().err == "container c1: held by another; try again [container-busy]\n"
    assert (host / "log").read_text().count("\n") == 1


def test_any_bytes_can_be_reported(host: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    name = os.fsdecode(b"/\xff")
    command = args.parse(["--log", str(host / "log"), "--log-format", "json", "create", name])

    assert report.failure(command, FileNotFoundError(2, "No such file", name)) == 1
    assert report.failure(command, ZeroDivisionError(name)) == 1

    assert b"create /\xff: /\xff: no such file [os-error]\n" in capfdbinary.readouterr().err
    assert [json.loads(line)["level"] for line in (host / "log").read_text().splitlines()] == ["error"] * 2


def test_an_os_error_names_its_file() -> None:
    error = FileNotFoundError(2, "No such file or directory", "/x")
    assert report.describe("create c1", error) == "create c1: /x: no such file or directory [os-error]"


def test_an_unexpected_one_leaves_its_traceback_in_a_file(host: Path) -> None:
    try:
        raise ZeroDivisionError("odd")
    except ZeroDivisionError as e:
        message = report.describe("create c1", e)

    (trace,) = (host / "state" / "logs").iterdir()
    assert message == (
        f"create c1: unexpected ZeroDivisionError: odd; please report this (log: {trace}) [internal]"
    )
    assert "Traceback" in trace.read_text()
    assert trace.stat().st_mode & 0o777 == 0o600
