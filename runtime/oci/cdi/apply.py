"""containerEdits of CDI, written into a specification as the container engines do it."""

from __future__ import annotations

import os
import stat

from diapause.runtime.errors import FailedPrecondition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from diapause.runtime.oci.spec import Spec

DEVICE_KEYS = ("type", "major", "minor", "fileMode", "uid", "gid")


def apply(spec: Spec, edits: dict[str, Any]) -> None:
    for entry in edits.get("env") or []:
        set_env(spec.env, entry)
    for node in edits.get("deviceNodes") or []:
        _add_device(spec, node)
    for mount in edits.get("mounts") or []:
        _add_mount(spec, mount)
    for hook in edits.get("hooks") or []:
        _add_hook(spec, hook)
    for gid in edits.get("additionalGids") or []:
        _add_gid(spec, gid)


def set_env(env: list[str], entry: str) -> None:
    name = entry.partition("=")[0]
    env[:] = [other for other in env if other.partition("=")[0] != name]
    env.append(entry)


def _add_device(spec: Spec, node: dict[str, Any]) -> None:
    path = node["path"]
    device: dict[str, Any] = {
        key: node[key] for key in ("type", "major", "minor", "fileMode", "uid", "gid") if key in node
    }
    device["path"] = path
    if not device.get("type") or (device["type"] != "p" and "major" not in device):
        device.update(_host_node(node.get("hostPath") or path))
    spec.devices[:] = [other for other in spec.devices if other["path"] != path]
    spec.devices.append(device)
    if device["type"] in ("b", "c"):
        rule = {
            "allow": True, "type": device["type"], "major": device["major"], "minor": device["minor"],
            "access": node.get("permissions") or "rwm",
        }  # fmt: skip
        rules = spec.part(spec.part(spec.linux, "resources", {}), "devices", [])
        if rule not in rules:
            rules.append(rule)


def _host_node(path: str) -> dict[str, Any]:
    try:
        status = os.stat(path)
    except OSError as e:
        todo = "load the driver, or write the CDI specification anew"
        raise FailedPrecondition("device-missing", f"gpu device {path}", str(e.strerror), todo) from None
    kind = {stat.S_IFCHR: "c", stat.S_IFBLK: "b", stat.S_IFIFO: "p"}.get(stat.S_IFMT(status.st_mode))
    if kind is None:
        raise FailedPrecondition(
            "device-not-a-node", f"gpu device {path}", "it is no device node", "correct the CDI file"
        )
    return {"type": kind, "major": os.major(status.st_rdev), "minor": os.minor(status.st_rdev)}


def _add_mount(spec: Spec, mount: dict[str, Any]) -> None:
    entry = {
        "destination": mount["containerPath"],
        "type": mount.get("type") or "bind",
        "source": mount["hostPath"],
        "options": mount.get("options") or ["bind", "ro", "nosuid", "nodev"],
    }  # fmt: skip
    spec.mounts[:] = [other for other in spec.mounts if other["destination"] != entry["destination"]]
    spec.mounts.append(entry)


def _add_hook(spec: Spec, hook: dict[str, Any]) -> None:
    entry: dict[str, Any] = {key: hook[key] for key in ("path", "args", "env", "timeout") if key in hook}
    stage = spec.hooks(hook["hookName"])
    if entry not in stage:
        stage.append(entry)


def _add_gid(spec: Spec, gid: int) -> None:
    gids = spec.part(spec.part(spec.process, "user", {}), "additionalGids", [])
    if gid and gid not in gids:
        gids.append(gid)
