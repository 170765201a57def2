"""The GPU of a controller, with everything that copies to and from it."""

from __future__ import annotations

import os

from diapause.runtime import errors
from diapause.runtime.gpud import names, segments
from diapause.runtime.gpud.calm import Calm
from diapause.runtime.gpud.cuda import DEVICE_UNAVAILABLE, CudaError, Device, Driver
from diapause.runtime.gpud.hasher import Hasher
from diapause.runtime.gpud.pool import Pool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.config import Config

_SHARE = 8  # of the host's memory, that the pool may take at most


class Gpu:
    """A context on the GPU, the pinned pool, the memory tier and the kernel."""

    def __init__(self, gpu: str, libcuda: str, config: Config) -> None:
        """Open it. Raises FailedPrecondition when it cannot be used."""
        self.uuid = gpu
        self.nvml = _beside(libcuda)
        self.calm = Calm()
        try:
            driver = Driver(libcuda)
            self.device = Device(driver, *_find(driver, gpu))
            self.pool = Pool(self.device, min(config.gpu_pool, _host_memory() // _SHARE), self.calm)
            self.hasher = Hasher(self.device, self.pool)
        except CudaError as e:
            todo = "look at the driver and at the kernel's log"
            if e.result == DEVICE_UNAVAILABLE:
                todo = "set the compute mode of the GPU to default"
            raise _unusable(gpu, f"{e}", todo) from None
        except (OSError, AttributeError) as e:
            raise _unusable(gpu, f"{libcuda}: {e}", "install the driver's libraries") from None
        folder = segments.folder(config.snapshot_memory_dir, gpu)
        self.segments = segments.Segments(self.device, folder, config.gpu_memory_tier, self.calm)


def _find(driver: Driver, gpu: str) -> tuple[int, bytes]:
    for ordinal, uuid in driver.devices():
        if uuid == names.uuid_bytes(gpu):
            return ordinal, uuid
    raise _unusable(gpu, "the driver does not know it", "compare with nvidia-smi -L")


def _unusable(gpu: str, why: str, todo: str) -> errors.FailedPrecondition:
    return errors.FailedPrecondition("gpud-no-gpu", f"controller of {gpu}", why, todo)


def _host_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _beside(libcuda: str) -> str:
    """NVML of the same driver, "" if it does not lie in the same folder."""
    path = os.path.join(os.path.dirname(os.path.realpath(libcuda)), "libnvidia-ml.so.1")
    return path if os.path.exists(path) else ""
