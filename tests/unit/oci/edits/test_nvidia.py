from typing import Any

from diapause.runtime.oci.edits import nvidia
from diapause.runtime.oci.spec import Spec

LIB = "/usr/lib/x86_64-linux-gnu"


def hook(*args: str) -> dict[str, Any]:
    return {"path": "/usr/bin/nvidia-cdi-hook", "args": ["nvidia-cdi-hook", *args]}


def test_links_become_mounts_and_the_mask_goes(gpu_spec: dict[str, Any]) -> None:
    keep = [hook("update-ldcache", "--folder", LIB), {"path": "/usr/bin/other"}]
    gpu_spec["mounts"] = [m for m in gpu_spec["mounts"] if not m["destination"].endswith(".so.1")]
    gpu_spec["hooks"] = {
        "createContainer": [
            hook("create-symlinks", "--link", f"libcuda.so.1::{LIB}/libcuda.so", "--link",
                 f"libcuda.so.580.159.03::{LIB}/libcuda.so.1"),
            hook("disable-device-node-modification"),
            *keep,
        ]
    }  # fmt: skip
    spec = Spec("/b/config.json", gpu_spec)

    nvidia.replace_hooks(spec)

    assert spec.hooks("createContainer") == keep
    real = spec.mount_at(f"{LIB}/libcuda.so.580.159.03")
    assert real is not None
    for name in ("libcuda.so", "libcuda.so.1"):
        mount = spec.mount_at(f"{LIB}/{name}")
        assert mount is not None
        assert mount["source"] == real["source"]


def test_a_link_to_something_that_is_no_mount_keeps_its_hook(gpu_spec: dict[str, Any]) -> None:
    links = hook("create-symlinks", f"--link=../elsewhere.so::{LIB}/libx.so")
    gpu_spec["hooks"] = {"createContainer": [links]}
    spec = Spec("/b/config.json", gpu_spec)

    nvidia.replace_hooks(spec)

    assert spec.hooks("createContainer") == [links]


def test_a_container_without_such_hooks_gets_no_empty_list(gpu_spec: dict[str, Any]) -> None:
    nvidia.replace_hooks(Spec("/b/config.json", gpu_spec))
    assert "hooks" not in gpu_spec
