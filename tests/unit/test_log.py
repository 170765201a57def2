import json
from pathlib import Path

from diapause.runtime import log


def test_a_json_record_has_the_fields_that_clients_read(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log.append(str(path), "error", 'a "b"\nc', style="json")
    log.append(str(path), "warning", "d", style="json")

    first, second = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    assert (first["level"], first["msg"], second["level"]) == ("error", 'a "b"\nc', "warning")
    assert first["time"].endswith("Z")


def test_a_text_record_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log.append(str(path), "error", "a\nb")

    (line,) = path.read_text(encoding="utf-8").splitlines()
    assert line.endswith('level=error msg="a\\nb"')


def test_a_log_that_cannot_be_written_does_not_matter(tmp_path: Path) -> None:
    log.append(str(tmp_path / "none" / "log"), "error", "x")
