"""NVIDIA's runtime in front of ours, at a restore."""

from pathlib import Path
from typing import Any

import pytest

from diapause.runtime.oci import above
from diapause.runtime.oci.spec import Spec

LISTED = '[nvidia-container-runtime]\nruntimes = ["/opt/bin/diapause-runc", "runc"]\n'


def annotations(host: Path, data: dict[str, Any], config: str, value: str = "all") -> dict[str, str]:
    (host / "nvidia.toml").write_text(config)
    data["process"]["env"].append(f"NVIDIA_VISIBLE_DEVICES={value}")
    spec = Spec("/b/config.json", data)
    above.adopt_request(spec, "/usr/bin/runc", {above.VARIABLE: str(host / "nvidia.toml")})
    return dict(data.get("annotations") or {})


def test_the_variable_becomes_the_request(host: Path, spec: dict[str, Any]) -> None:
    assert annotations(host, spec, LISTED, "0,1") == {
        "diapause.dev/gpu-enabled": "true",
        "diapause.dev/gpus": "0,1",
    }


@pytest.mark.parametrize(
    "config",
    ["", "[", 'nvidia-container-runtime = 1', "[nvidia-container-runtime]\nruntimes = 1\n",
     '[nvidia-container-runtime]\nruntimes = ["runc"]\n'],
)  # fmt: skip
def test_an_image_cannot_ask_where_nvidias_runtime_does_not_name_ours(
    host: Path, spec: dict[str, Any], config: str
) -> None:
    assert annotations(host, spec, config) == {}


@pytest.mark.parametrize("value", ["void", "none", ""])
def test_a_variable_that_asks_for_nothing_is_no_request(host: Path, spec: dict[str, Any], value: str) -> None:
    assert annotations(host, spec, LISTED, value) == {}


def test_what_is_asked_by_name_stays(host: Path, spec: dict[str, Any]) -> None:
    spec["annotations"] = {"diapause.dev/gpu": "off"}
    assert annotations(host, spec, LISTED) == {"diapause.dev/gpu": "off"}


def test_a_specification_with_a_gpu_stays(host: Path, gpu_spec: dict[str, Any]) -> None:
    assert annotations(host, gpu_spec, LISTED) == {}
