"""Which libcuda of an image the loader would take, and what is done about it."""

import os
from pathlib import Path
from typing import Any

import pytest

from diapause.runtime.oci.edits import compat
from diapause.runtime.oci.spec import Spec

OURS = "/copies/a/libcuda.so.1"
FILE = "usr/local/cuda-12.4/compat/libcuda.so.550.54.15"


@pytest.fixture
def rootfs(host: Path) -> Path:
    """As NVIDIA's images have it: cuda → cuda-12.4, compat/libcuda.so.1 → libcuda.so.550.54.15."""
    root = host / "b" / "rootfs"
    put(root, FILE)
    (root / FILE).with_name("libcuda.so.1").symlink_to("libcuda.so.550.54.15")
    (root / "usr/local/cuda").symlink_to("/usr/local/cuda-12.4")
    return root


def put(root: Path, name: str, content: bytes = b"\x7fELF\x02") -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_bytes(content)


def spec_of(rootfs: Path, data: dict[str, Any], *env: str) -> Spec:
    data["process"]["env"] = [*env]
    return Spec(str(rootfs.parent / "config.json"), data)


def test_the_package_is_found_once_and_without_links(rootfs: Path, spec: dict[str, Any]) -> None:
    assert compat.find(spec_of(rootfs, spec)) == {f"/{FILE}": False}


@pytest.mark.parametrize(
    "env",
    [
        "LD_LIBRARY_PATH=/usr/local/cuda/compat",
        "LD_LIBRARY_PATH=/x:/usr/local/cuda-12.4/compat/:/y",
        "LD_PRELOAD=/usr/local/cuda/compat/libcuda.so.1",
        "LD_PRELOAD=libx.so /usr/local/cuda/compat/libcuda.so.1",
    ],
)
def test_the_loader_prefers_what_a_variable_names(rootfs: Path, spec: dict[str, Any], env: str) -> None:
    assert compat.find(spec_of(rootfs, spec, env)) == {f"/{FILE}": True}


def test_the_last_value_of_a_variable_counts(rootfs: Path, spec: dict[str, Any]) -> None:
    env = ("LD_LIBRARY_PATH=/usr/local/cuda/compat", "LD_LIBRARY_PATH=/usr/lib")
    assert compat.find(spec_of(rootfs, spec, *env)) == {f"/{FILE}": False}


def test_nvidias_hook_makes_the_loader_prefer_it(rootfs: Path, spec: dict[str, Any]) -> None:
    args = ["nvidia-cdi-hook", "enable-cuda-compat", "--host-driver-version=580.1"]
    spec["hooks"] = {"createContainer": [{"path": "/usr/bin/nvidia-cdi-hook", "args": args}]}
    assert compat.find(spec_of(rootfs, spec)) == {f"/{FILE}": True}


def test_a_directory_that_is_mounted_is_looked_into(rootfs: Path, spec: dict[str, Any], host: Path) -> None:
    put(host, "volume/lib/libcuda.so.1")
    spec["mounts"].append({"destination": "/data", "type": "bind", "source": str(host / "volume")})
    one = spec_of(rootfs, spec, "LD_LIBRARY_PATH=/data/lib")
    assert compat.find(one) == {"/data/lib/libcuda.so.1": True, f"/{FILE}": False}


def test_what_a_mount_hides_is_not_there(rootfs: Path, spec: dict[str, Any]) -> None:
    spec["mounts"].append({"destination": "/usr/local", "type": "tmpfs", "source": "tmpfs"})
    assert compat.find(spec_of(rootfs, spec)) == {}


def test_a_file_that_the_engine_mounts_is_not_the_images(rootfs: Path, spec: dict[str, Any]) -> None:
    spec["mounts"].append({"destination": f"/{FILE}", "type": "bind", "source": "/driver/libcuda.so.1"})
    assert compat.find(spec_of(rootfs, spec)) == {}


@pytest.mark.parametrize("kind", ["directory", "fifo", "dangling", "out", "32-bit", "other"])
def test_what_no_64_bit_program_could_load_is_left(
    rootfs: Path, spec: dict[str, Any], host: Path, kind: str
) -> None:
    path = rootfs / "lib/libcuda.so.1"
    path.parent.mkdir()
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "dangling":
        path.symlink_to("nowhere")
    elif kind == "out":
        put(host, "libcuda.so.1")
        path.symlink_to(f"../../../{host.name}/libcuda.so.1")
    elif kind == "32-bit":
        path.write_bytes(b"\x7fELF\x01")
    else:
        put(rootfs, "lib/data")
        path.symlink_to("data")
    one = spec_of(rootfs, spec, "LD_LIBRARY_PATH=/lib")
    assert compat.find(one) == {f"/{FILE}": False}


@pytest.mark.parametrize(
    ("node", "newer"),
    [("550.54.15", False), ("550.54.14", True), ("535.1", True), ("580.159.03", False), ("softgpu-1", False),
     ("unknown", False)],
)  # fmt: skip
def test_newer_is_by_the_version_in_the_name(node: str, newer: bool) -> None:
    assert compat.is_newer(f"/{FILE}", node) is newer


def test_ours_is_put_over_what_is_not_newer(rootfs: Path, spec: dict[str, Any]) -> None:
    put(rootfs, "usr/local/cuda-13.1/compat/libcuda.so.590.1")
    one = spec_of(rootfs, spec)

    compat.cover(one, OURS, "580.159.03")
    compat.cover(one, OURS, "580.159.03")

    mounts = [mount for mount in one.mounts if mount["source"] == OURS]
    assert [mount["destination"] for mount in mounts] == [f"/{FILE}"]
    assert mounts[0]["options"] == ["bind", "ro", "nosuid", "nodev"]


def test_no_rootfs_is_no_libcuda(host: Path, spec: dict[str, Any]) -> None:
    assert compat.find(Spec(str(host / "config.json"), spec)) == {}
