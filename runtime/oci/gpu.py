"""Which GPU a specification asks for, and whether that makes its container a managed one.

A request is a libcuda mount (every CDI edit has one) or NVIDIA's hook. Device nodes alone are none: every
privileged container has them. `NVIDIA_VISIBLE_DEVICES` counts only where NVIDIA's runtime is the
low-level one, for which it means a GPU; otherwise nothing that an image can set opts a container in.
"""

from __future__ import annotations

import os

from diapause.runtime.oci.annotations import engine as engine_said

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from diapause.runtime.config import Config
    from diapause.runtime.oci.spec import Spec

DEVICES = ("/dev/nvidia", "/dev/diapause-gpu")
LEGACY_HOOKS = ("nvidia-container-runtime-hook", "nvidia-container-toolkit")
LEGACY_TOOL = "nvidia-container-cli"  # containerd's own form: `containerd oci-hook -- nvidia-container-cli …`
VISIBLE = "NVIDIA_VISIBLE_DEVICES"


def engine(spec: Spec, configuration: Callable[[], Config], runc: str) -> str:
    """intercept or driver for a managed container, "" for one to leave alone."""
    said = asked_by_name(spec)
    if said in ("intercept", "driver"):
        return said
    if said == "off" or not (said == "default" or requested(spec, runc)):
        return ""
    default = configuration().runtime_default_engine
    if default == "off":
        return "intercept" if said == "default" else ""
    return "intercept" if default == "auto" else default


def asked_by_name(spec: Spec) -> str:
    """What the annotations say: intercept, driver, off, "default", "" for nothing."""
    return engine_said(spec.annotations) if spec.data.get("annotations") else ""


def requested(spec: Spec, runc: str) -> bool:
    return bool(cuda_mounts(spec) or legacy_hooks(spec) or asked_by_variable(spec, runc))


def asked_by_variable(spec: Spec, runc: str) -> str:
    """The devices that NVIDIA's runtime, where it is the low-level one, would inject; "" for none."""
    return visible_devices(spec) if is_nvidias(runc) else ""


def is_nvidias(runc: str) -> bool:
    """Whether the low-level runtime is NVIDIA's (nvidia-container-runtime, also its .cdi and .legacy)."""
    return "nvidia" in os.path.basename(runc)


def is_libcuda(path: str) -> bool:
    """libcuda.so, libcuda.so.1, libcuda.so.580.159.03: not libcudart, not libcudadebugger."""
    name = os.path.basename(path)
    return name == "libcuda.so" or name.startswith("libcuda.so.")


def cuda_mounts(spec: Spec) -> list[dict[str, Any]]:
    """The mounts that put a libcuda into the container, ours at its private path excepted."""
    mounts = spec.data.get("mounts") or []
    return [
        mount
        for mount in mounts
        if is_libcuda(mount["destination"]) and not mount["destination"].startswith("/.diapause/")
    ]


def device_nodes(spec: Spec) -> list[dict[str, Any]]:
    """What state.json records of the GPU's device nodes: {path, major, minor}."""
    devices = (spec.data.get("linux") or {}).get("devices") or []
    return [
        {"path": device["path"], "major": device.get("major", 0), "minor": device.get("minor", 0)}
        for device in devices
        if device["path"].startswith(DEVICES)
    ]


def legacy_hooks(spec: Spec) -> list[tuple[str, dict[str, Any]]]:
    """(stage, hook) of every hook of NVIDIA's that mounts the driver into the container by itself."""
    return [
        (stage, hook)
        for stage in ("prestart", "createRuntime")
        for hook in (spec.data.get("hooks") or {}).get(stage) or []
        if _runs_tool(hook)
        or (os.path.basename(hook["path"]) in LEGACY_HOOKS and visible_devices(spec, "all"))
    ]


def _runs_tool(hook: dict[str, Any]) -> bool:
    return any(
        os.path.basename(str(word)) == LEGACY_TOOL for word in [hook["path"], *(hook.get("args") or [])]
    )


def visible_devices(spec: Spec, default: str = "") -> str:
    """The variable's value, `default` if it is not set, "" if it says none."""
    found = default
    for entry in (spec.data.get("process") or {}).get("env") or []:
        name, _, value = str(entry).partition("=")
        if name == VISIBLE:
            found = value
    return "" if found in ("void", "none") else found
