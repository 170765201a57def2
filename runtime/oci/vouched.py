"""Whether a libcuda is one of the node's own.

The engine loads the container's libcuda on the host, as root, to make the driver's checkpoint calls. A mount
in a specification may also show a file that a container wrote (a volume with a subPath), and its owner is
root there as well; so neither its place nor its owner says enough, and the node has to name the file: in
the configuration, where drivers are installed, in a CDI specification, or as a copy of our own.
"""

from __future__ import annotations

import os

from diapause.runtime.container import state_dir
from diapause.runtime.errors import FailedPrecondition
from diapause.runtime.oci import driver, gpu

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from diapause.runtime.config import Config
    from diapause.runtime.errors import InvalidArgument

ROOTS = ("/", "/run/nvidia/driver")  # the second: where NVIDIA's operator has a driver in a container


def check(real: str, config: Config) -> None:
    """`real` is without links. Raises FailedPrecondition (codes libcuda-foreign, softgpu-changed), and
    InvalidArgument where a CDI specification that is broken may have named it."""
    if any(real == os.path.realpath(path) for path in _named(config)):
        return
    if real.startswith(f"{os.path.realpath(state_dir())}/softgpu/"):
        from diapause.runtime.oci.cdi import software

        software.verify(os.path.dirname(real))
        return
    broken: list[InvalidArgument] = []
    if any(real == os.path.realpath(path) for path in _described(config, broken)):
        return
    if broken:
        raise broken[0]
    why = f"{real} is none of this node's: no CDI specification has it, and no driver is installed there"
    todo = "name it in the configuration ([driver] libcuda), or have it in a CDI specification"
    raise FailedPrecondition("libcuda-foreign", "libcuda", why, todo)


def _named(config: Config) -> Iterator[str]:
    if config.driver_libcuda:
        yield config.driver_libcuda
    for root in ROOTS:
        yield from driver.installed(root)


def _described(config: Config, broken: list[InvalidArgument]) -> Iterator[str]:
    from diapause.runtime.oci.cdi import specs

    for _, data in specs.read_all(config.cdi_spec_dirs, broken):
        for part in (data, *(data.get("devices") or [])):
            for mount in (part.get("containerEdits") or {}).get("mounts") or []:
                if gpu.is_libcuda(mount["containerPath"]):
                    yield mount["hostPath"]
