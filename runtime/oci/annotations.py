"""The annotations of a container that mean something to Diapause, and how they are read.

`diapause.dev/gpu`          intercept | driver | off   the engine, and that a GPU is wanted
`diapause.dev/gpu-enabled`  true | false               the same with the configured engine
`diapause.dev/gpus`         all | 0,1 | GPU-1a2b | nvidia.com/gpu=0   which GPUs, where the engine asked for
                            none: comma-separated CDI device names, with or without their kind
`diapause.dev/snapshot-placement`  auto | embedded | local   where the GPU data of its snapshots goes
"""

from __future__ import annotations

from diapause.runtime.errors import InvalidArgument

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "diapause.dev/"
GPU = f"{PREFIX}gpu"
GPU_ENABLED = f"{PREFIX}gpu-enabled"
GPUS = f"{PREFIX}gpus"
PLACEMENT = f"{PREFIX}snapshot-placement"
CRIU_CONFIG = "org.criu.config"  # runc's: the CRIU configuration file of this container

ENGINES = ("intercept", "driver", "off")
PLACEMENTS = ("auto", "embedded", "local")


def engine(annotations: Mapping[str, str]) -> str:
    """intercept, driver or off, "default" for the configured one, "" if nothing was said."""
    named = annotations.get(GPU)
    enabled = annotations.get(GPU_ENABLED)
    if named is not None:
        _one_of(GPU, named, ENGINES)
    if enabled is not None:
        _one_of(GPU_ENABLED, enabled, ("true", "false"))
    if named and enabled and (named == "off") != (enabled == "false"):
        why = f"{GPU}={named} and {GPU_ENABLED}={enabled} contradict each other"
        raise InvalidArgument("annotations-contradict", "annotations", why, "take one of them out")
    if named is not None:
        return named
    if enabled is not None:
        return "default" if enabled == "true" else "off"
    return ""


def placement(annotations: Mapping[str, str]) -> str:
    """auto, embedded or local, "" if nothing was said."""
    value = annotations.get(PLACEMENT)
    return "" if value is None else _one_of(PLACEMENT, value, PLACEMENTS)


def _one_of(name: str, value: object, known: tuple[str, ...]) -> str:
    if value not in known:
        why = f"{value!r} is not one of {', '.join(known)}"
        raise InvalidArgument("annotation-bad-value", f"annotation {name}", why, "correct the annotation")
    return str(value)
