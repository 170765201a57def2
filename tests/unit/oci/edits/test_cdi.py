import json
from pathlib import Path
from typing import Any

import pytest

from diapause.runtime.errors import FailedPrecondition, NotFound
from diapause.runtime.oci.edits import cdi
from diapause.runtime.oci.spec import Spec

LIBCUDA = "/usr/lib/x86_64-linux-gnu/libcuda.so.1"


def node_has(host: Path, kind: str, *names: str, libcuda: bool = True) -> None:
    mounts = [{"hostPath": "/h/libcuda.so.1", "containerPath": LIBCUDA}] if libcuda else []
    devices = [{"name": name, "containerEdits": {"env": [f"GOT_{name}=1"]}} for name in names]
    data = {"cdiVersion": "0.6.0", "kind": kind, "devices": devices, "containerEdits": {"mounts": mounts}}
    (host / "cdi" / f"{kind.replace('/', '-')}.json").write_text(json.dumps(data))


def normalised(host: Path, data: dict[str, Any], runc: str = "/usr/bin/runc") -> Spec:
    spec = Spec("/b/config.json", data)
    cdi.normalise(spec, [str(host / "cdi")], runc)
    return spec


def got(spec: Spec) -> list[str]:
    return [entry for entry in spec.env if entry.startswith("GOT_")]


@pytest.mark.parametrize(
    ("words", "visible", "expected"),
    [
        (["nvidia-container-runtime-hook", "prestart"], None, ["GOT_all=1"]),
        (["nvidia-container-runtime-hook", "prestart"], "0", ["GOT_0=1"]),
        (["containerd", "oci-hook", "--", "nvidia-container-cli", "--device=0", "--device=1"], None,
         ["GOT_0=1", "GOT_1=1"]),
        (["containerd", "oci-hook", "--", "/usr/bin/nvidia-container-cli", "--device=0,1"], "all",
         ["GOT_0=1", "GOT_1=1"]),
    ],
)  # fmt: skip
def test_nvidias_hook_becomes_cdi_edits(
    host: Path, spec: dict[str, Any], words: list[str], visible: str | None, expected: list[str]
) -> None:
    node_has(host, "nvidia.com/gpu", "0", "1", "all")
    keep = {"path": "/usr/bin/other", "args": ["other"]}
    spec["hooks"] = {"prestart": [{"path": f"/usr/bin/{words[0]}", "args": words}, keep]}
    if visible:
        spec["process"]["env"].append(f"NVIDIA_VISIBLE_DEVICES={visible}")

    one = normalised(host, spec)

    assert got(one) == expected
    assert one.mount_at(LIBCUDA) is not None
    assert one.hooks("prestart") == [keep]


def test_the_hook_goes_where_cdi_was_applied_already(host: Path, gpu_spec: dict[str, Any]) -> None:
    gpu_spec["hooks"] = {"prestart": [{"path": "/usr/bin/nvidia-container-runtime-hook", "args": []}]}
    assert normalised(host, gpu_spec).hooks("prestart") == []


def test_without_a_specification_the_hook_is_refused_with_the_command(
    host: Path, spec: dict[str, Any]
) -> None:
    spec["hooks"] = {"prestart": [{"path": "/usr/bin/nvidia-container-runtime-hook", "args": []}]}
    with pytest.raises(NotFound, match=r"nvidia.com/gpu in .*diapause cdi generate"):
        normalised(host, spec)


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (None, ["GOT_all=1"]),
        ("all", ["GOT_all=1"]),
        ("0, 1", ["GOT_0=1", "GOT_1=1"]),
        ("diapause.dev/gpu=1", ["GOT_1=1"]),
    ],
)
def test_a_request_by_annotation_takes_the_nodes_gpus(
    host: Path,
    spec: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    annotation: str | None,
    expected: list[str],
) -> None:
    monkeypatch.setattr(cdi, "NVIDIA_DEVICE", str(host / "none"))
    node_has(host, "diapause.dev/gpu", "0", "1", "all")
    if annotation:
        spec["annotations"] = {"diapause.dev/gpus": annotation}
    assert got(normalised(host, spec)) == expected


@pytest.mark.parametrize("value", ["void", "1"])
def test_an_images_variable_does_not_choose(
    host: Path, spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setattr(cdi, "NVIDIA_DEVICE", str(host / "none"))
    node_has(host, "diapause.dev/gpu", "0", "1", "all")
    spec["process"]["env"].append(f"NVIDIA_VISIBLE_DEVICES={value}")
    assert got(normalised(host, spec)) == ["GOT_all=1"]


def test_it_does_where_nvidias_runtime_reads_it(host: Path, spec: dict[str, Any]) -> None:
    node_has(host, "nvidia.com/gpu", "0", "1", "all")
    spec["process"]["env"].append("NVIDIA_VISIBLE_DEVICES=1")
    assert got(normalised(host, spec, "/usr/bin/nvidia-container-runtime")) == ["GOT_1=1"]


def test_a_real_gpu_comes_before_the_software_one(host: Path, spec: dict[str, Any]) -> None:
    node_has(host, "diapause.dev/gpu", "all")
    node_has(host, "nvidia.com/gpu", "all", "0")
    spec["annotations"] = {"diapause.dev/gpus": "0"}
    assert got(normalised(host, spec)) == ["GOT_0=1"]


class TestBesideARealGpu:
    @pytest.fixture(autouse=True)
    def real_gpu(self, host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(cdi, "NVIDIA_DEVICE", "/dev/null")
        node_has(host, "diapause.dev/gpu", "all", "0")

    def test_the_software_gpu_is_never_chosen_silently(self, host: Path, spec: dict[str, Any]) -> None:
        with pytest.raises(FailedPrecondition, match=r"diapause\.dev/gpus=diapause\.dev/gpu=0"):
            normalised(host, spec)

    def test_by_name_it_is(self, host: Path, spec: dict[str, Any]) -> None:
        spec["annotations"] = {"diapause.dev/gpus": "diapause.dev/gpu=0"}
        assert got(normalised(host, spec)) == ["GOT_0=1"]


def test_two_kinds_in_one_container_are_refused(host: Path, spec: dict[str, Any]) -> None:
    spec["annotations"] = {"diapause.dev/gpus": "nvidia.com/gpu=0,diapause.dev/gpu=0"}
    with pytest.raises(FailedPrecondition, match="ask for one kind"):
        normalised(host, spec)


def test_a_specification_without_libcuda_is_refused(host: Path, spec: dict[str, Any]) -> None:
    node_has(host, "nvidia.com/gpu", "all", libcuda=False)
    with pytest.raises(FailedPrecondition, match="mounts no libcuda"):
        normalised(host, spec)


def test_a_specification_with_a_gpu_stays_as_it_is(host: Path, gpu_spec: dict[str, Any]) -> None:
    before = json.dumps(gpu_spec)
    normalised(host, gpu_spec)
    assert json.dumps(gpu_spec) == before


def test_nvidias_hook_gets_the_software_gpu_where_there_is_no_other(
    host: Path, spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cdi, "NVIDIA_DEVICE", str(host / "none"))
    node_has(host, "diapause.dev/gpu", "all", "0")
    spec["hooks"] = {"prestart": [{"path": "/usr/bin/nvidia-container-runtime-hook", "args": []}]}
    assert got(normalised(host, spec)) == ["GOT_all=1"]


def test_nvidias_runtime_below_is_told_to_put_no_gpu_in(gpu_spec: dict[str, Any]) -> None:
    gpu_spec["process"]["env"].append("NVIDIA_VISIBLE_DEVICES=all")
    spec = Spec("/b/config.json", gpu_spec)

    cdi.keep_nvidia_out(spec, "/usr/bin/runc")
    assert "NVIDIA_VISIBLE_DEVICES=all" in spec.env

    cdi.keep_nvidia_out(spec, "/usr/bin/nvidia-container-runtime")
    assert [entry for entry in spec.env if entry.startswith("NVIDIA")] == ["NVIDIA_VISIBLE_DEVICES=void"]
