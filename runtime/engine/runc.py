"""What the engine knows of the low-level runtime: its state file, its environment, how it fails."""

from __future__ import annotations

import os

from diapause.runtime import json
from diapause.runtime.errors import FailedPrecondition, InvalidArgument, NotFound
from diapause.runtime.linux.files import read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from diapause.runtime.engine.request import Request, Settings

_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_STATE_LIMIT = 64 << 20
_LOG_LIMIT = 1 << 20


class State:
    """The part of runc's own state.json that counts here."""

    __slots__ = ("cgroup_paths", "created", "criu_config", "init", "start_time")

    def __init__(self, raw: Mapping[str, Any], *, created: bool = False) -> None:
        self.created = created  # and not started yet
        self.init = int(raw["init_process_pid"])
        self.start_time = int(raw["init_process_start"])
        self.cgroup_paths: dict[str, str] = dict(raw["cgroup_paths"])
        labels = raw.get("config", {}).get("labels") or []
        prefix = "org.criu.config="
        found = [label.removeprefix(prefix) for label in labels if label.startswith(prefix)]
        self.criu_config: str | None = found[0] if found else None


def exists(root: str, container_id: str) -> bool:
    return os.path.lexists(f"{root}/{container_id}/state.json")


def state(root: str, container_id: str, what: str) -> State:
    """Raises NotFound for a container that runc does not know, InvalidArgument for an unreadable file."""
    path = f"{root}/{container_id}/state.json"
    try:
        raw = json.loads(read_regular(path, limit=_STATE_LIMIT).decode())
        return State(raw, created=os.path.lexists(f"{root}/{container_id}/exec.fifo"))
    except FileNotFoundError:
        raise NotFound("container-missing", what, "container does not exist", f"see {root}") from None
    except (OSError, ValueError, KeyError, TypeError) as e:
        why = f"{path}: {type(e).__name__} {e}"
        raise InvalidArgument("runc-state", what, why, "check the version of runc") from None


def environment(settings: Settings, what: str) -> dict[str, str]:
    """Ours, with the configured CRIU found first: runc looks for `criu` in PATH."""
    env = dict(os.environ)
    path = env.get("PATH") or _DEFAULT_PATH
    if settings.criu_path:
        path = f"{_criu_folder(settings.criu_path, what)}:{path}"
    env["PATH"] = path
    return env


def _criu_folder(path: str, what: str) -> str:
    if os.path.isdir(path):
        return path
    if os.path.basename(path) != "criu" or not os.path.isfile(path):
        why = f"[criu] path is {path}, and there is no such program"
        raise FailedPrecondition("criu-missing", what, why, "name a program called criu, or its folder")
    return os.path.dirname(path)


def argv(request: Request, verb: str, extra: Sequence[str] = ()) -> list[str]:
    """The call as it came, with flags of ours before the others."""
    return [request.runc, *request.global_args, verb, *extra, *request.verb_args]


def message(line: str) -> str:
    """What a line of runc's says, without the time stamp and level that it has when it goes to stderr."""
    stamp, found, text = line.partition(' level=error msg="')
    return text.removesuffix('"').replace('\\"', '"') if found and stamp.startswith("time=") else line


def last_error(log: str, start: int) -> str:
    """The last error in what runc wrote to its --log from byte `start` on, "" if there is none."""
    try:
        with open(log, "rb") as file:
            file.seek(start)
            lines = file.read(_LOG_LIMIT).decode(errors="replace").splitlines()
    except OSError:
        return ""
    return next((said for line in reversed(lines) if (said := _error_in(line))), "")


def _error_in(line: str) -> str:
    try:
        record = json.loads(line)
    except ValueError:
        said = message(line)
        return said if said != line else ""
    return str(record.get("msg", "")) if isinstance(record, dict) and record.get("level") == "error" else ""


def delete_argv(runc: str, global_args: Sequence[str], container_id: str) -> list[str]:
    return [runc, *global_args, "delete", "--force", container_id]
