"""A controller that is kept warm starts with the first container that may need it, not with a checkpoint.

To start one takes some tenths of a second, and it holds some hundred megabytes of the GPU: it is done here
only where the configuration keeps it anyway ([gpu] idle-timeout = 0).
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from diapause.runtime.config import Config

SOFTWARE = "GPU-d1a9a05e-50f7-4000-8000-000000000000"  # native/softgpu/identity.h
_DRIVER = "/proc/driver/nvidia"


def up(state: dict[str, Any], config: Config) -> None:
    """Start the controllers of a container's GPUs, unless they run. Nobody waits, and nothing can fail."""
    if state["engine"] != "intercept" or config.gpu_idle_timeout != 0:
        return
    from diapause.runtime.errors import DiapauseError
    from diapause.runtime.gpud import names, start

    libcuda = config.driver_libcuda or state["driver"]["libcuda"]["path"]
    for gpu in gpus(state):
        if not os.path.exists(names.socket_path(gpu)):
            try:
                start.begin(gpu, libcuda)
            except (DiapauseError, OSError):
                pass  # the first checkpoint says what is wrong


def gpus(state: dict[str, Any], driver: str = _DRIVER) -> list[str]:
    """The UUIDs of a container's GPUs, as far as they can be known without asking the driver."""
    if state["software"]:
        return [SOFTWARE]
    from diapause.runtime.oci.cdi.nvidia import uuids

    known = uuids(driver)
    numbers = (device["path"].removeprefix("/dev/nvidia") for device in state["devices"])
    return [known[int(number)] for number in numbers if number.isdigit() and int(number) in known]
