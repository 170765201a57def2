"""Which libcuda the host may load. Owners say nothing: what a container writes to a volume may be root's."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from diapause.runtime import config
from diapause.runtime.errors import FailedPrecondition
from diapause.runtime.oci import vouched
from diapause.runtime.oci.cdi import software


@pytest.fixture
def volume(host: Path) -> Path:
    """A libcuda in a volume, owned by us as one is that a container's root wrote."""
    path = host / "pods" / "volume" / "libcuda.so.1"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\x7fELF\x02 runs as root")
    return path


def check(path: Path) -> None:
    vouched.check(os.path.realpath(path), config.load())


def test_a_file_in_a_volume_is_foreign(volume: Path) -> None:
    with pytest.raises(FailedPrecondition, match=r"none of this node's.*\[libcuda-foreign\]"):
        check(volume)


def test_what_the_configuration_names_is_the_nodes(volume: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (volume.parent / "link").symlink_to(volume)
    monkeypatch.setenv("DIAPAUSE_DRIVER_LIBCUDA", str(volume.parent / "link"))
    check(volume)


def test_an_installed_driver_is_the_nodes(host: Path, libcuda: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DIAPAUSE_DRIVER_LIBCUDA")
    monkeypatch.setattr(vouched, "ROOTS", (str(host),))
    with pytest.raises(FailedPrecondition, match="libcuda-foreign"):
        check(libcuda)
    (host / "usr/lib64").mkdir(parents=True)
    (host / "usr/lib64/libcuda.so.1").symlink_to(libcuda)
    check(libcuda)


@pytest.mark.parametrize("where", ["specification", "device"])
def test_what_a_cdi_specification_mounts_is_the_nodes(host: Path, volume: Path, where: str) -> None:
    edits = {"mounts": [{"hostPath": str(volume), "containerPath": "/usr/lib/libcuda.so.1"}]}
    device: dict[str, Any] = {"name": "0"}
    data = {"cdiVersion": "0.6.0", "kind": "example.com/gpu", "devices": [device]}
    (data if where == "specification" else device)["containerEdits"] = edits
    (host / "cdi" / "a.json").write_text(json.dumps(data), encoding="utf-8")
    check(volume)


def test_what_a_cdi_specification_mounts_as_something_else_is_not(host: Path, volume: Path) -> None:
    edits = {"mounts": [{"hostPath": str(volume), "containerPath": "/usr/lib/other.so"}]}
    data = {"cdiVersion": "0.6.0", "kind": "example.com/gpu", "devices": [], "containerEdits": edits}
    (host / "cdi" / "a.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(FailedPrecondition, match="libcuda-foreign"):
        check(volume)


def test_a_copy_of_the_software_gpu_is_ours(native: Path) -> None:
    check(Path(software.publish(), "libcuda.so.1"))


@pytest.mark.parametrize("name", software.LIBRARIES)
def test_a_copy_that_was_written_to_is_ours_no_more(native: Path, name: str) -> None:
    directory = Path(software.publish())
    (directory / name).chmod(0o755)
    with (directory / name).open("ab") as file:
        file.write(b"x")

    with pytest.raises(FailedPrecondition, match=r"cdi generate --software.*\[softgpu-changed\]"):
        check(directory / "libcuda.so.1")

    (directory / name).unlink()
    with pytest.raises(FailedPrecondition, match=r"No such file.*\[softgpu-changed\]"):
        check(directory / "libcuda.so.1")
