"""Whether a specification has the shape that our views of it take for granted.

Not a validation: runc does that. Only what we walk through is looked at, so that a malformed file ends in a
message that names the place.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PARTS = {"annotations": dict, "hooks": dict, "linux": dict, "process": dict, "root": dict, "mounts": list}


def misshapen(data: Any) -> str:
    """What is wrong and where, "" if nothing."""
    if not isinstance(data, dict):
        return "not an object"
    for name, kind in PARTS.items():
        if not isinstance(data.get(name), kind | None):
            return f"{name} is not {'a list' if kind is list else 'an object'}"
    return (
        _linux(data.get("linux") or {})
        or _texts(data.get("annotations") or {})
        or _mounts(data.get("mounts") or [])
        or _hooks(data.get("hooks") or {})
        or _strings("process.env", (data.get("process") or {}).get("env"))
    )


def _linux(linux: dict[str, Any]) -> str:
    resources = linux.get("resources")
    if not isinstance(resources, dict | None):
        return "linux.resources is not an object"
    if not isinstance((resources or {}).get("devices"), list | None):
        return "linux.resources.devices is not a list"
    return _devices(linux.get("devices"))


def _texts(annotations: dict[str, Any]) -> str:
    wrong = [name for name, value in annotations.items() if not isinstance(value, str)]
    return f"annotations.{wrong[0]} is no text" if wrong else ""


def _mounts(mounts: list[Any]) -> str:
    for number, mount in enumerate(mounts):
        if not isinstance(mount, dict) or not _is_path(mount.get("destination")):
            return f"mounts[{number}] has no destination"
        if mount.get("source") is not None and not _is_path(mount["source"]):
            return f"mounts[{number}].source is no path"
        if wrong := _strings(f"mounts[{number}].options", mount.get("options")):
            return wrong
    return ""


def _hooks(stages: dict[str, Any]) -> str:
    for stage, hooks in stages.items():
        if not isinstance(hooks, list | None):
            return f"hooks.{stage} is not a list"
        for number, hook in enumerate(hooks or []):
            if not isinstance(hook, dict) or not _is_path(hook.get("path")):
                return f"hooks.{stage}[{number}] has no path"
            if wrong := _strings(f"hooks.{stage}[{number}].args", hook.get("args")):
                return wrong
    return ""


def _devices(devices: Any) -> str:
    if not isinstance(devices, list | None):
        return "linux.devices is not a list"
    for number, device in enumerate(devices or []):
        if not isinstance(device, dict) or not _is_path(device.get("path")):
            return f"linux.devices[{number}] has no path"
    return ""


def _is_path(value: Any) -> bool:
    return isinstance(value, str) and "\0" not in value


def _strings(where: str, value: Any) -> str:
    if value is None or (isinstance(value, list) and all(isinstance(entry, str) for entry in value)):
        return ""
    return f"{where} is not a list of texts"
