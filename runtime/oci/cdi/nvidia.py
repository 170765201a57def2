"""A CDI specification of the node's NVIDIA GPUs that needs no hooks.

Every library of the driver is mounted at its versioned name and at its SONAME, so no link has to be made in
the rootfs and no linker cache rewritten: what a hook does there, a restore would miss.
"""

from __future__ import annotations

import os

from diapause.runtime.errors import FailedPrecondition
from diapause.runtime.oci import driver
from diapause.runtime.oci.cdi.specs import NVIDIA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CDI_VERSION = "0.5.0"  # the first with hostPath of device nodes; podman 4.3 reads no newer one
# What compute and utility need. The number is the SONAME's; None: the SONAME is the versioned name.
UNVERSIONED = "libcuda.so"  # some programs, numba for one, load it by this name
LIBRARIES: dict[str, str | None] = {
    "libcuda": "1",
    "libcudadebugger": "1",
    "libnvidia-ml": "1",
    "libnvidia-cfg": "1",
    "libnvidia-ptxjitcompiler": "1",
    "libnvidia-nvvm": "4",
    "libnvidia-nvvm70": "4",
    "libnvidia-gpucomp": None,
    "libnvidia-opencl": "1",
    "libnvidia-allocator": "1",
    "libnvidia-sandboxutils": "1",
    "libnvidia-tileiras": None,
}
PROGRAMS = ("nvidia-smi",)
COMMON_NODES = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
OPTIONS = ["ro", "nosuid", "nodev", "bind"]


def has_gpu(dev: str = "/dev") -> bool:
    return os.path.exists(f"{dev}/nvidiactl") or bool(_minors(dev))


def generate(*, root: str = "/", dev: str = "/dev", proc: str = "/proc/driver/nvidia") -> dict[str, Any]:
    """The specification. `root` is where the driver's user-space files lie, dev and proc are the host's.

    Raises FailedPrecondition if the node lacks GPU, device nodes or driver files.
    """
    minors = _minors(dev)
    if not minors:
        why = f"no device node {dev}/nvidia0"
        raise FailedPrecondition(
            "gpu-missing", "cdi generate", why, "load the driver (`nvidia-modprobe -c 0 -u`)"
        )
    known = uuids(proc)
    devices = [_device(str(minor), [minor], dev) for minor in minors]
    devices += [_device(known[minor], [minor], dev) for minor in minors if minor in known]
    devices.append(_device("all", minors, dev))
    return {
        "cdiVersion": CDI_VERSION,
        "kind": NVIDIA,
        "devices": devices,
        "containerEdits": {
            "env": ["NVIDIA_VISIBLE_DEVICES=void"],  # keeps NVIDIA's own runtime from injecting a second time
            "deviceNodes": [
                {"path": f"/dev/{name}"} for name in COMMON_NODES if os.path.exists(f"{dev}/{name}")
            ],
            "mounts": _library_mounts(root) + _program_mounts(root),
        },
    }


def _device(name: str, minors: list[int], dev: str) -> dict[str, Any]:
    nodes = [_node(f"nvidia{minor}", dev) for minor in minors]
    return {"name": name, "containerEdits": {"deviceNodes": nodes}}


def _node(name: str, dev: str) -> dict[str, str]:
    """Without numbers: the majors of NVIDIA's nodes change from boot to boot, engines look them up."""
    node = {"path": f"/dev/{name}"}
    return node if dev == "/dev" else {**node, "hostPath": f"{dev}/{name}"}


def _minors(dev: str) -> list[int]:
    names = os.listdir(dev) if os.path.isdir(dev) else []
    return sorted(int(name[6:]) for name in names if name.startswith("nvidia") and name[6:].isdigit())


def uuids(proc: str) -> dict[int, str]:
    """GPU UUIDs by minor, from <proc>/gpus/<bus>/information; incomplete where the driver hides them."""
    found = {}
    gpus = f"{proc}/gpus"
    for bus in sorted(os.listdir(gpus)) if os.path.isdir(gpus) else []:
        with open(f"{gpus}/{bus}/information", encoding="utf-8", errors="replace") as file:
            fields = dict(line.split(":", 1) for line in file if ":" in line)
        values = {name.strip(): value.strip() for name, value in fields.items()}
        minor, uuid = values.get("Device Minor", ""), values.get("GPU UUID", "")
        if minor.isdigit() and uuid.startswith("GPU-") and "?" not in uuid:
            found[int(minor)] = uuid
    return found


def _library_mounts(root: str) -> list[dict[str, Any]]:
    libcuda = next(driver.installed(root), "")
    if not libcuda:
        why = f"no libcuda.so.1 below {root}"
        todo = "install the driver's libraries, or name their root with --driver-root"
        raise FailedPrecondition("libcuda-missing", "cdi generate", why, todo)
    directory = os.path.dirname(libcuda)
    version = os.path.basename(os.path.realpath(libcuda)).removeprefix("libcuda.so.")
    default = f"/usr/lib/{os.uname().machine}-linux-gnu"
    mounts = []
    for name, number in LIBRARIES.items():
        source = os.path.join(directory, f"{name}.so.{version}")
        if not os.path.exists(source):
            continue
        names = [f"{name}.so.{version}", *([f"{name}.so.{number}"] if number else [])]
        targets = [f"{default}/{target}" for target in names] + [f"/usr/lib64/{names[-1]}"]
        if name == "libcuda":
            targets += [f"{default}/{UNVERSIONED}", f"/usr/lib64/{UNVERSIONED}"]
        mounts += [_mount(os.path.realpath(source), target) for target in targets]
    return mounts


def _program_mounts(root: str) -> list[dict[str, Any]]:
    sources = [os.path.join(root, "usr/bin", name) for name in PROGRAMS]
    return [_mount(path, f"/usr/bin/{os.path.basename(path)}") for path in sources if os.path.exists(path)]


def _mount(source: str, target: str) -> dict[str, Any]:
    return {"hostPath": source, "containerPath": target, "options": list(OPTIONS)}
