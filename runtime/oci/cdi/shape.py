"""Whether a CDI specification has the shape that applying it takes for granted."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What each entry of a list in containerEdits must have, as text.
NEEDED = {"deviceNodes": ("path",), "mounts": ("hostPath", "containerPath"), "hooks": ("hookName", "path")}
PLAIN = {"env": str, "additionalGids": int}


def misshapen(data: dict[str, Any]) -> str:
    """What is wrong and where, "" if nothing."""
    devices = data.get("devices")
    if not isinstance(devices, list | None):
        return "devices is not a list"
    for number, device in enumerate(devices or []):
        if not isinstance(device, dict):
            return f"devices[{number}] is not an object"
        if wrong := _edits(device.get("containerEdits")):
            return f"devices[{number}].{wrong}"
    return _edits(data.get("containerEdits"))


def _edits(edits: Any) -> str:
    if not isinstance(edits, dict | None):
        return "containerEdits is not an object"
    for name, value in (edits or {}).items():
        where = f"containerEdits.{name}"
        if name not in NEEDED and name not in PLAIN:
            continue
        if not isinstance(value, list | None):
            return f"{where} is not a list"
        for number, entry in enumerate(value or []):
            if wrong := _entry(name, entry):
                return f"{where}[{number}] {wrong}"
    return ""


def _entry(name: str, entry: Any) -> str:
    if name in PLAIN:
        return "" if isinstance(entry, PLAIN[name]) else f"is no {PLAIN[name].__name__}"
    if not isinstance(entry, dict):
        return "is not an object"
    missing = [key for key in NEEDED[name] if not isinstance(entry.get(key), str) or "\0" in entry[key]]
    return f"has no {missing[0]}" if missing else ""
