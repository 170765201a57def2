"""NVIDIA's runtime in front of ours: it execs the first program of its list, and diapause-runc is on it.

It edits the specification at `create` alone. A restore arrives as the client wrote it, with nothing but the
variable that NVIDIA's runtime goes by; then that variable is the request, as the administrator configured it.
"""

from __future__ import annotations

import os

from diapause.runtime.oci import gpu
from diapause.runtime.oci.annotations import GPU_ENABLED, GPUS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from diapause.runtime.oci.spec import Spec

CONFIG = "/etc/nvidia-container-runtime/config.toml"
VARIABLE = "NVIDIA_CTK_CONFIG_FILE_PATH"  # names another file
PROGRAM = "diapause-runc"


def adopt_request(spec: Spec, runc: str, environ: Mapping[str, str] = os.environ) -> None:
    """Say by annotation what the variable says, if nothing else asks and NVIDIA's runtime names ours."""
    devices = gpu.visible_devices(spec)
    if not devices or gpu.asked_by_name(spec) or gpu.requested(spec, runc):
        return
    if is_configured(environ.get(VARIABLE) or CONFIG):
        spec.annotations[GPU_ENABLED] = "true"
        spec.annotations.setdefault(GPUS, devices)


def is_configured(path: str) -> bool:
    import tomllib

    try:
        with open(path, "rb") as file:
            table = tomllib.load(file).get("nvidia-container-runtime")
    except (OSError, ValueError):
        return False
    runtimes = table.get("runtimes") if isinstance(table, dict) else None
    return isinstance(runtimes, list) and any(os.path.basename(str(name)) == PROGRAM for name in runtimes)
