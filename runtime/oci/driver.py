"""The identity of the driver a container was given: version and digest of the real libcuda.

A snapshot can only go back to the driver it came from, so the identity is taken at create, verified by the
hook at every start, and recorded in the manifest.
"""

from __future__ import annotations

import os

from diapause.runtime.errors import FailedPrecondition
from diapause.runtime.oci import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

KERNEL_MODULE = "/proc/driver/nvidia/version"
SOFTWARE_SYMBOL = b"diapause_softgpu_version"  # only the software GPU has it
SOFTWARE_VERSION = "softgpu-1"


def identity(libcuda: str) -> dict[str, Any]:
    """`driver` of state.json for a libcuda on the host. Raises FailedPrecondition if it is not there."""
    real = os.path.realpath(libcuda)
    try:
        found = digest.of_file(real)
    except FileNotFoundError:
        why = f"{libcuda} does not exist on this host"
        todo = "install the driver, or write the CDI specification anew with `diapause cdi generate`"
        raise FailedPrecondition("libcuda-missing", "driver", why, todo) from None
    return {
        "version": version(real),
        "libcuda": {"path": real, "digest": found.digest, "size": found.size},
    }


def verify(what: str, state: dict[str, Any]) -> None:
    """That the libcuda of a container's state is the file it was: programs of ours load it on the host."""
    recorded = state["driver"]["libcuda"]
    if wrong := digest.difference(recorded["path"], recorded["digest"]):
        raise FailedPrecondition("driver-changed", what, f"libcuda {wrong}", "create the container again")


def is_software(driver: dict[str, Any]) -> bool:
    return str(driver.get("version", "")).startswith("softgpu")


def version(real: str) -> str:
    """From the file's name, libcuda.so.580.159.03; else from the file (software) or the kernel module."""
    suffix = os.path.basename(real).removeprefix("libcuda.so").lstrip(".")
    if "." in suffix and suffix.replace(".", "").isdigit():
        return suffix
    if contains(real, SOFTWARE_SYMBOL):
        return SOFTWARE_VERSION
    return module_version() or "unknown"


def module_version() -> str:
    """The version of the loaded NVIDIA kernel module, "" if there is none."""
    try:
        with open(KERNEL_MODULE, encoding="ascii", errors="replace") as file:
            line = file.readline()
    except OSError:
        return ""
    words = line.split()
    return next((word for word in words if word[:1].isdigit() and "." in word), "")


def contains(path: str, needle: bytes) -> bool:
    import mmap

    with open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return False
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
            return view.find(needle) >= 0


def installed(root: str = "/") -> Iterator[str]:
    """The libcuda.so.1 of every place below `root` where drivers install one."""
    machine = os.uname().machine
    for directory in (f"usr/lib/{machine}-linux-gnu", "usr/lib64", "usr/local/nvidia/lib64", "usr/lib",
                      "usr/lib/wsl/lib", "opt/nvidia/lib64", "home/kubernetes/bin/nvidia/lib64"):  # fmt: skip
        path = os.path.join(root, directory, "libcuda.so.1")
        if os.path.exists(path):
            yield path
