"""The sum that `make test` ends with: no failure is lost, and no test is no success."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

CI = Path(__file__).parents[3] / ".ci"


@pytest.fixture
def stages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(CI))
    import report  # type: ignore[import-not-found,unused-ignore]
    import stages  # type: ignore[import-not-found,unused-ignore]

    monkeypatch.setattr(report, "RESULTS", tmp_path)
    (tmp_path / "Makefile").write_text(
        'good:\n\techo \'{"passed": 3, "failed": 0, "skipped": 1}\' >good.json\n'
        'bad:\n\techo \'{"passed": 2, "failed": 1, "skipped": 0}\' >bad.json; exit 1\n'
        "broken:\n\texit 1\n"
        'empty:\n\techo \'{"passed": 0, "failed": 0, "skipped": 9}\' >empty.json\n'
        'late:\n\techo \'{"passed": 2, "failed": 0, "skipped": 0}\' >late.json; exit 2\n'
        'suite:\n\techo \'<testsuites><testsuite tests="5" failures="1" errors="1" skipped="1"/>'
        "</testsuites>' >suite.xml; exit 1\n"
    )
    monkeypatch.chdir(tmp_path)
    yield stages
    for name in ("report", "stages"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("names", "status", "line"),
    [
        (["good"], 0, "3 passed, 0 failed, 1 skipped"),
        (["good", "bad"], 1, "5 passed, 1 failed, 1 skipped"),
        (["broken", "good"], 1, "3 passed, 1 failed, 1 skipped"),
        (["empty"], 1, "0 passed, 1 failed"),
        (["late"], 1, "2 passed, 1 failed"),
        (["suite"], 1, "2 passed, 2 failed, 1 skipped"),
    ],
)
def test_the_last_line_sums_every_stage(
    stages: ModuleType, capfd: pytest.CaptureFixture[str], names: list[str], status: int, line: str
) -> None:
    assert stages.main(names) == status
    assert capfd.readouterr().out.splitlines()[-1] == line


def test_a_result_of_an_earlier_run_does_not_count(
    stages: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.json").write_text('{"passed": 7, "failed": 0, "skipped": 0}')

    assert stages.main(["broken"]) == 1
    assert capfd.readouterr().out.splitlines()[-1] == "0 passed, 1 failed"
