from pathlib import Path
from typing import Any

import pytest

from diapause.runtime.errors import FailedPrecondition
from diapause.runtime.oci.edits import library
from diapause.runtime.oci.spec import Spec


def edited(data: dict[str, Any], source: str = "/copies/a/libcuda.so.1") -> Spec:
    spec = Spec("/b/config.json", data)
    library.insert(spec, source)
    return spec


def test_every_libcuda_becomes_ours_and_the_real_one_is_at_its_private_path(
    gpu_spec: dict[str, Any], libcuda: Path
) -> None:
    spec = edited(gpu_spec)

    for name in ("libcuda.so.1", "libcuda.so.580.159.03"):
        mount = spec.mount_at(f"/usr/lib/x86_64-linux-gnu/{name}")
        assert mount is not None
        assert (mount["source"], mount["options"]) == (
            "/copies/a/libcuda.so.1",
            ["bind", "ro", "nosuid", "nodev"],
        )
    private = spec.mount_at("/.diapause/libcuda.so.1")
    assert private is not None
    assert private["source"] == str(libcuda.resolve())
    assert "ro" in private["options"]


def test_inserting_again_changes_the_source_only(gpu_spec: dict[str, Any], libcuda: Path) -> None:
    spec = edited(gpu_spec)
    count = len(spec.mounts)
    library.insert(spec, "/copies/b/libcuda.so.1")

    assert len(spec.mounts) == count
    assert {mount["source"] for mount in library.targets(spec)} == {"/copies/b/libcuda.so.1"}
    assert library.real_libcuda(spec) == str(libcuda.resolve())


def test_a_32_bit_libcuda_stays(gpu_spec: dict[str, Any], host: Path) -> None:
    old = host / "libcuda.so.580.159.03"
    old.write_bytes(b"\x7fELF\x01 for i386")
    gpu_spec["mounts"].append({"destination": "/usr/lib/i386-linux-gnu/libcuda.so.1", "source": str(old)})

    spec = edited(gpu_spec)

    mount = spec.mount_at("/usr/lib/i386-linux-gnu/libcuda.so.1")
    assert mount is not None
    assert mount["source"] == str(old)


def test_two_drivers_in_one_container_are_refused(gpu_spec: dict[str, Any], host: Path) -> None:
    other = host / "libcuda.so.570.1"
    other.write_bytes(b"\x7fELF\x02 another")
    gpu_spec["mounts"].append({"destination": "/usr/lib64/libcuda.so.1", "source": str(other)})

    with pytest.raises(FailedPrecondition, match=r"different ones: .*570\.1"):
        edited(gpu_spec)
