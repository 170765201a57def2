import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from diapause.runtime.cli.cdi import cdi
from diapause.runtime.errors import AlreadyExists, FailedPrecondition
from diapause.runtime.oci.cdi import nvidia


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch, native: Path) -> None:
    monkeypatch.setattr(nvidia, "has_gpu", lambda: False)


def generate(*words: str) -> tuple[str, str]:
    result = CliRunner().invoke(cdi, ["generate", *words], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout, result.stderr


def test_the_specification_goes_to_stdout_and_the_notice_to_stderr() -> None:
    out, err = generate()
    assert json.loads(out)["kind"] == "diapause.dev/gpu"
    assert err == "notice: this is the software GPU, it computes on the CPU (no NVIDIA GPU on this host)\n"


def test_yaml_by_flag_and_by_name(host: Path) -> None:
    out, _ = generate("--format", "yaml")
    generate("--output", str(host / "new" / "gpu.yaml"))
    assert yaml.safe_load(out) == yaml.safe_load((host / "new" / "gpu.yaml").read_text())


def test_the_last_line_says_where_it_is(host: Path) -> None:
    path = host / "cdi" / "diapause.json"
    out, err = generate("--output", str(path))
    assert out == f"Wrote {path}\n"
    assert "devices: diapause.dev/gpu=0, diapause.dev/gpu=all" in err
    assert path.stat().st_mode & 0o777 == 0o644
    generate("--output", str(path))  # the same file again


def test_a_second_file_of_the_same_kind_is_refused(host: Path) -> None:
    generate("--output", str(host / "cdi" / "a.json"))
    with pytest.raises(AlreadyExists, match=r"a\.json describes diapause\.dev/gpu already"):
        generate("--output", str(host / "cdi" / "b.json"))


def test_it_can_have_the_name_that_clients_look_for() -> None:
    out, _ = generate("--kind", "nvidia.com/gpu")
    assert json.loads(out)["kind"] == "nvidia.com/gpu"


class TestBesideARealGpu:
    @pytest.fixture(autouse=True)
    def gpu(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(nvidia, "has_gpu", lambda: True)

    def test_the_software_gpu_has_to_be_asked_for(self, host: Path) -> None:
        with pytest.raises(FailedPrecondition):
            generate("--driver-root", str(host))

    def test_it_must_not_be_taken_for_the_real_one(self) -> None:
        with pytest.raises(FailedPrecondition, match="softgpu-beside-nvidia"):
            generate("--software", "--kind", "nvidia.com/gpu")

    def test_then_the_notice_says_so(self) -> None:
        out, err = generate("--software")
        assert json.loads(out)["kind"] == "diapause.dev/gpu"
        assert "this host has an NVIDIA GPU too" in err


def test_a_file_that_cannot_be_written_is_named(host: Path) -> None:
    (host / "file").write_text("")
    with pytest.raises(FailedPrecondition, match="output-not-written"):
        generate("--output", str(host / "file" / "x.json"))
