"""Who is managed."""

from typing import Any

import pytest

from diapause.runtime.config import Config
from diapause.runtime.errors import InvalidArgument
from diapause.runtime.oci import gpu
from diapause.runtime.oci.spec import Spec

HOOK = {
    "path": "/usr/bin/nvidia-container-runtime-hook",
    "args": ["nvidia-container-runtime-hook", "prestart"],
}
TOOL = {
    "path": "/usr/bin/containerd",
    "args": ["containerd", "oci-hook", "--", "/usr/bin/nvidia-container-cli"],
}


def engine(spec: dict[str, Any], *, default: str = "auto", runc: str = "/usr/bin/runc") -> str:
    config = Config()
    config.runtime_default_engine = default
    return gpu.engine(Spec("/b/config.json", spec), lambda: config, runc)


def test_a_container_without_a_gpu_is_left_alone(spec: dict[str, Any]) -> None:
    assert engine(spec) == ""


@pytest.mark.parametrize(
    ("default", "expected"),
    [("auto", "intercept"), ("intercept", "intercept"), ("driver", "driver"), ("off", "")],
)
def test_a_cdi_edit_takes_the_configured_engine(
    gpu_spec: dict[str, Any], default: str, expected: str
) -> None:
    assert engine(gpu_spec, default=default) == expected


@pytest.mark.parametrize("stage", ["prestart", "createRuntime"])
@pytest.mark.parametrize("hook", [HOOK, TOOL])
def test_nvidias_hook_is_a_request(spec: dict[str, Any], stage: str, hook: dict[str, Any]) -> None:
    spec["hooks"] = {stage: [hook]}
    assert engine(spec) == "intercept"


def test_a_hook_that_is_told_to_do_nothing_is_none(spec: dict[str, Any]) -> None:
    spec["hooks"] = {"prestart": [HOOK]}
    spec["process"]["env"].append("NVIDIA_VISIBLE_DEVICES=void")
    assert engine(spec) == ""


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({"diapause.dev/gpu": "driver"}, "driver"),
        ({"diapause.dev/gpu": "intercept"}, "intercept"),
        ({"diapause.dev/gpu": "off"}, ""),
        ({"diapause.dev/gpu": "off", "diapause.dev/gpu-enabled": "false"}, ""),
        ({"diapause.dev/gpu": "driver", "diapause.dev/gpu-enabled": "true"}, "driver"),
        ({"diapause.dev/gpu-enabled": "true"}, "intercept"),
        ({"diapause.dev/gpu-enabled": "false"}, ""),
    ],
)
def test_an_annotation_decides(
    spec: dict[str, Any], gpu_spec: dict[str, Any], annotations: dict[str, str], expected: str
) -> None:
    for one in (spec, gpu_spec):
        assert engine({**one, "annotations": annotations}) == expected


def test_enabled_by_annotation_wins_over_a_default_of_off(spec: dict[str, Any]) -> None:
    assert engine({**spec, "annotations": {"diapause.dev/gpu-enabled": "true"}}, default="off") == "intercept"


@pytest.mark.parametrize("annotations", [{"diapause.dev/gpu": "yes"}, {"diapause.dev/gpu-enabled": "1"}])
def test_an_unknown_value_is_refused(spec: dict[str, Any], annotations: dict[str, str]) -> None:
    with pytest.raises(InvalidArgument, match="is not one of"):
        engine({**spec, "annotations": annotations})


@pytest.mark.parametrize(("named", "enabled"), [("off", "true"), ("intercept", "false"), ("driver", "false")])
def test_annotations_that_contradict_each_other_are_refused(
    spec: dict[str, Any], named: str, enabled: str
) -> None:
    annotations = {"diapause.dev/gpu": named, "diapause.dev/gpu-enabled": enabled}
    with pytest.raises(InvalidArgument, match=rf"gpu={named} and .*={enabled}.*\[annotations-contradict\]"):
        engine({**spec, "annotations": annotations})


def test_an_image_cannot_opt_in(spec: dict[str, Any]) -> None:
    spec["process"]["env"] += [
        "NVIDIA_VISIBLE_DEVICES=all",
        "DIAPAUSE_GPU=intercept",
        "diapause.dev/gpu=intercept",
    ]
    assert engine(spec) == ""


@pytest.mark.parametrize(("value", "expected"), [("all", "intercept"), ("void", ""), ("none", ""), ("", "")])
def test_the_variable_counts_where_nvidias_runtime_reads_it(
    spec: dict[str, Any], value: str, expected: str
) -> None:
    spec["process"]["env"].append(f"NVIDIA_VISIBLE_DEVICES={value}")
    assert engine(spec, runc="/usr/bin/nvidia-container-runtime") == expected


def test_the_devices_of_a_privileged_container_are_no_request(spec: dict[str, Any]) -> None:
    spec["linux"]["devices"] = [{"path": "/dev/nvidia0", "type": "c", "major": 195, "minor": 0}]
    assert engine(spec) == ""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/usr/lib/libcuda.so", True),
        ("/usr/lib/libcuda.so.1", True),
        ("/usr/lib/libcuda.so.580.159.03", True),
        ("/usr/lib/libcudart.so.12", False),
        ("/usr/lib/libcudadebugger.so.1", False),
        ("/libcuda.so.1/other", False),
    ],
)
def test_what_a_libcuda_is(path: str, expected: bool) -> None:
    assert gpu.is_libcuda(path) is expected
