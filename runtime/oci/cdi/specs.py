"""The node's CDI specifications: files in the configured directories, later directories win.

JSON is read without help. YAML, which `nvidia-ctk cdi generate` writes by default, needs PyYAML; it is
imported when the first such file is met, and never for a container whose engine already applied CDI.
"""

from __future__ import annotations

import os

from diapause.runtime import json
from diapause.runtime.errors import InvalidArgument, NotFound
from diapause.runtime.oci.cdi.shape import misshapen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

NVIDIA = "nvidia.com/gpu"
SOFTWARE = "diapause.dev/gpu"
GENERATE = "run `diapause cdi generate --output /etc/cdi/diapause.json`"


def read_all(
    directories: Sequence[str], broken: list[InvalidArgument] | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """(path, specification) of every file that is one, those of higher priority first.

    A broken file concerns those who miss something: `broken` gets its error.
    """
    for directory in reversed(directories):
        try:
            names = sorted(os.listdir(directory))
        except OSError:
            continue
        for name in names:
            if name.endswith((".json", ".yaml", ".yml")):
                path = f"{directory}/{name}"
                try:
                    data = read(path)
                except InvalidArgument as e:
                    if broken is not None:
                        broken.append(e)
                    continue
                yield path, data


def read(path: str) -> dict[str, Any]:
    what = f"CDI specification {path}"
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), encoding="utf-8") as file:
            text = file.read()  # of a fifo nothing, instead of waiting for ever
        data = json.loads(text) if path.endswith(".json") else _yaml(text)
    except (ValueError, RecursionError) as e:
        raise InvalidArgument("cdi-malformed", what, str(e), "write it anew or remove it") from None
    except OSError as e:
        why = (e.strerror or str(e)).lower()
        raise InvalidArgument("cdi-malformed", what, why, "write it anew or remove it") from None
    if not isinstance(data, dict) or not isinstance(data.get("kind"), str):
        raise InvalidArgument("cdi-malformed", what, "it has no kind", "write it anew or remove it")
    if wrong := misshapen(data):
        raise InvalidArgument("cdi-malformed", what, wrong, "write it anew or remove it")
    return data


def _yaml(text: str) -> Any:
    import yaml

    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as e:
        raise ValueError(str(e).replace("\n", " ")) from None


def kinds(directories: Sequence[str]) -> set[str]:
    """The kinds of GPU that we know and that the node has specifications of.

    Raises InvalidArgument if there is none, and a broken file that may have been one.
    """
    broken: list[InvalidArgument] = []
    found = {data["kind"] for _, data in read_all(directories, broken)} & {NVIDIA, SOFTWARE}
    if broken and not found:
        raise broken[0]
    return found


def edits(kind: str, names: Sequence[str], directories: Sequence[str]) -> list[dict[str, Any]]:
    """The containerEdits of the devices, and once those of each specification that has one of them.

    Raises NotFound for a device that no specification on the node has, InvalidArgument if a broken file may
    have it.
    """
    devices: dict[str, dict[str, Any]] = {}
    owners: dict[str, dict[str, Any]] = {}
    files = []
    broken: list[InvalidArgument] = []
    for path, data in read_all(directories, broken):
        if data["kind"] != kind:
            continue
        files.append(path)
        for device in data.get("devices") or []:
            devices.setdefault(str(device.get("name")), device)
            owners.setdefault(str(device.get("name")), data)
    if broken and any(name not in devices for name in names):
        raise broken[0]
    if not files:
        why = f"no CDI specification for {kind} in {', '.join(directories)}"
        raise NotFound("cdi-missing", "gpu request", why, GENERATE)
    if unknown := [name for name in names if name not in devices]:
        why = f"{kind}={unknown[0]} is in none of {', '.join(files)}; known are {', '.join(sorted(devices))}"
        raise NotFound("cdi-unknown-device", "gpu request", why, "correct the request or write the file anew")
    wanted: list[dict[str, Any]] = []
    for name in names:
        if owners[name] not in wanted:
            wanted.append(owners[name])
        wanted.append(devices[name])
    return [part.get("containerEdits") or {} for part in wanted]
