"""That library and devices are still what they were when the container was prepared."""

from __future__ import annotations

from diapause.runtime.errors import FailedPrecondition
from diapause.runtime.oci import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def library(what: str, state: dict[str, Any]) -> None:
    recorded = state.get("library")
    if recorded and (wrong := digest.difference(recorded["path"], recorded["digest"])):
        todo = "remove the file and install the package diapause again"
        raise FailedPrecondition("library-changed", what, f"library {wrong}", todo)


def devices(what: str, state: dict[str, Any]) -> None:
    """Each number must belong to a driver that is loaded: the container's node would not open otherwise."""
    known = _character_drivers()
    for device in state["devices"]:
        if device["major"] and device["major"] not in known:
            why = f"no driver on this host has {device['path']} ({device['major']}:{device['minor']})"
            raise FailedPrecondition("device-missing", what, why, "load the GPU's driver")


def _character_drivers() -> set[int]:
    with open("/proc/devices", encoding="ascii") as file:
        lines = file.read().partition("Block devices")[0].splitlines()
    return {int(line.split()[0]) for line in lines if line[:3].strip().isdigit()}
