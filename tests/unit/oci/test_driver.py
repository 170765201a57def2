from pathlib import Path

import pytest

from diapause.runtime.errors import FailedPrecondition
from diapause.runtime.oci import driver


def test_the_version_is_in_the_name_behind_the_link(libcuda: Path) -> None:
    identity = driver.identity(str(libcuda))
    assert identity["version"] == "580.159.03"
    assert identity["libcuda"]["path"] == str(libcuda.resolve())
    assert identity["libcuda"]["digest"].startswith("sha256:")
    assert not driver.is_software(identity)


def test_the_software_gpu_has_a_mark(native: Path) -> None:
    identity = driver.identity(str(native / "softgpu/libcuda.so.1"))
    assert identity["version"] == "softgpu-1"
    assert driver.is_software(identity)


def test_a_name_without_a_version_asks_the_kernel_module(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (host / "libcuda.so.1").write_bytes(b"\x7fELF\x02")
    module = host / "version"
    monkeypatch.setattr(driver, "KERNEL_MODULE", str(module))
    assert driver.version(str(host / "libcuda.so.1")) == "unknown"
    module.write_text(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.03  Release Build\nGCC\n"
    )
    assert driver.version(str(host / "libcuda.so.1")) == "580.159.03"


def test_a_missing_libcuda_names_what_to_do(host: Path) -> None:
    with pytest.raises(FailedPrecondition, match="diapause cdi generate"):
        driver.identity(str(host / "libcuda.so.1"))


def test_an_empty_file_is_not_software(host: Path) -> None:
    (host / "empty").write_bytes(b"")
    assert not driver.contains(str(host / "empty"), b"x")


def test_the_nodes_libcuda_is_found_where_drivers_install_it(host: Path) -> None:
    assert list(driver.installed(str(host))) == []
    found = [host / directory / "libcuda.so.1" for directory in ("usr/lib64", "usr/local/nvidia/lib64")]
    for path in found:
        path.parent.mkdir(parents=True)
        path.write_bytes(b"")
    assert list(driver.installed(str(host))) == [str(path) for path in found]


def test_a_libcuda_that_changed_since_is_not_loaded(libcuda: Path) -> None:
    state = {"driver": driver.identity(str(libcuda))}
    driver.verify("checkpoint c1", state)

    libcuda.resolve().write_bytes(b"another")
    with pytest.raises(
        FailedPrecondition, match=r"checkpoint c1: libcuda .* has changed .*\[driver-changed\]"
    ):
        driver.verify("checkpoint c1", state)
    libcuda.resolve().unlink()
    with pytest.raises(FailedPrecondition, match="driver-changed"):
        driver.verify("checkpoint c1", state)
