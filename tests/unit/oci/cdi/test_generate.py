"""What `diapause cdi generate` writes, and that container engines would accept it."""

import os
from pathlib import Path
from typing import Any

import pytest

from diapause.runtime.errors import FailedPrecondition
from diapause.runtime.oci.cdi import nvidia, software

TRIPLET = f"/usr/lib/{os.uname().machine}-linux-gnu"
VERSION = "580.159.03"


@pytest.fixture
def machine(host: Path) -> dict[str, str]:
    """A machine with two GPUs and a driver."""
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "nvidia-caps"):
        (host / "dev").mkdir(exist_ok=True)
        (host / "dev" / name).write_text("")
    for minor, uuid in ((0, "GPU-aaaa"), (1, "GPU-????")):
        bus = host / "proc/gpus" / f"0000:0{minor}:00.0"
        bus.mkdir(parents=True)
        (bus / "information").write_text(f"Model: \t\t H200\nGPU UUID: \t {uuid}\nDevice Minor: \t {minor}\n")
    libraries = host / "root/usr/lib64"
    libraries.mkdir(parents=True)
    for name in ("libcuda", "libnvidia-ml", "libnvidia-gpucomp", "libcudadebugger"):
        (libraries / f"{name}.so.{VERSION}").write_bytes(b"\x7fELF\x02")
    (libraries / "libcuda.so.1").symlink_to(f"libcuda.so.{VERSION}")
    (libraries / "libcuda.so.570.1").write_bytes(b"a leftover of an earlier driver")
    return {"root": str(host / "root"), "dev": str(host / "dev"), "proc": str(host / "proc")}


def valid(specification: dict[str, Any]) -> bool:
    """The constraints of CDI 0.6's schema on what we write."""
    assert set(specification) == {"cdiVersion", "kind", "devices", "containerEdits"} - (
        set() if "containerEdits" in specification else {"containerEdits"}
    )
    parts = [
        specification.get("containerEdits", {}),
        *[d["containerEdits"] for d in specification["devices"]],
    ]
    for edits in parts:
        assert set(edits) <= {"env", "deviceNodes", "mounts"}
        for node in edits.get("deviceNodes", []):
            assert set(node) <= {"path", "hostPath", "type", "major", "minor", "fileMode", "permissions"}
            assert node["path"].startswith("/dev/")
        for mount in edits.get("mounts", []):
            assert set(mount) == {"hostPath", "containerPath", "options"}
            assert Path(mount["hostPath"]).is_file()
    names = [device["name"] for device in specification["devices"]]
    return len(set(names)) == len(names) and all(names)


def test_an_nvidia_machine_without_hooks(machine: dict[str, str]) -> None:
    found = nvidia.generate(**machine)

    assert valid(found)
    assert [device["name"] for device in found["devices"]] == ["0", "1", "GPU-aaaa", "all"]
    every = found["devices"][-1]["containerEdits"]["deviceNodes"]
    assert [node["path"] for node in every] == ["/dev/nvidia0", "/dev/nvidia1"]
    common = [node["path"] for node in found["containerEdits"]["deviceNodes"]]
    assert common == ["/dev/nvidiactl", "/dev/nvidia-uvm"]


def test_each_library_is_at_its_versioned_name_and_its_soname(machine: dict[str, str]) -> None:
    mounts = nvidia.generate(**machine)["containerEdits"]["mounts"]
    targets = {mount["containerPath"]: Path(mount["hostPath"]).name for mount in mounts}

    for name in ("libcuda", "libnvidia-ml", "libcudadebugger"):
        for target in (f"{TRIPLET}/{name}.so.{VERSION}", f"{TRIPLET}/{name}.so.1", f"/usr/lib64/{name}.so.1"):
            assert targets[target] == f"{name}.so.{VERSION}"
    assert targets[f"{TRIPLET}/libcuda.so"] == f"libcuda.so.{VERSION}"
    assert f"{TRIPLET}/libnvidia-gpucomp.so.{VERSION}" in targets
    assert not any("570" in target for target in targets)
    assert len(targets) == len(mounts)


@pytest.mark.parametrize(
    ("missing", "message"), [("dev", "no device node"), ("root", "no libcuda.so.1 below")]
)
def test_what_a_machine_lacks_is_named(
    machine: dict[str, str], host: Path, missing: str, message: str
) -> None:
    machine[missing] = str(host / "none")
    with pytest.raises(FailedPrecondition, match=message):
        nvidia.generate(**machine)


def test_the_software_gpu(native: Path, host: Path) -> None:
    found = software.generate(["/dev/no-such", "/dev/null"])

    assert valid(found)
    assert [device["name"] for device in found["devices"]] == ["0", "all"]
    edits = found["devices"][0]["containerEdits"]
    (node,) = edits["deviceNodes"]
    assert node == {
        "path": "/dev/diapause-gpu0", "hostPath": "/dev/null",
        "type": "c", "major": 1, "minor": 3, "fileMode": 0o666,
    }  # fmt: skip
    for mount in edits["mounts"]:
        assert mount["hostPath"].startswith(f"{host}/state/softgpu/")
        name = Path(mount["hostPath"]).name
        assert Path(mount["hostPath"]).read_bytes() == (native / "softgpu" / name).read_bytes()
    assert {mount["containerPath"] for mount in edits["mounts"]} == {
        f"{directory}/{name}"
        for directory in (TRIPLET, "/usr/lib64")
        for name in ("libcuda.so", "libcuda.so.1", "libnvidia-ml.so.1")
    }
    assert software.generate(["/dev/null"])["devices"] == found["devices"]


def test_a_host_without_any_such_device_is_told_what_to_load(native: Path) -> None:
    with pytest.raises(FailedPrecondition, match="modprobe fuse"):
        software.generate(["/dev/no-such"])
