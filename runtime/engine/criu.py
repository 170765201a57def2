"""CRIU as runc will find it: which one, how old, and the configuration file that it reads."""

from __future__ import annotations

import os

from diapause.runtime import native
from diapause.runtime.engine import runc
from diapause.runtime.errors import FailedPrecondition, Internal
from diapause.runtime.linux.files import write_atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from diapause.runtime.engine.request import Request

MINIMUM = (4, 2)  # dumps a frozen container, also of one process; understands `network-lock skip`
_WHERE = "put a newer criu first in PATH, or name its folder in [criu] path"
_HARMLESS = ("rlimit: Can't setup RLIMIT_NOFILE",)  # where limits may not be raised; it goes on
_ERROR_TAIL = 1 << 16  # bytes at the end of a log that are searched for its last error


def which(name: str, env: Mapping[str, str]) -> str:
    """The program that a search of PATH finds, "" for none."""
    for folder in env["PATH"].split(":"):
        path = os.path.join(folder or ".", name)
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return os.path.abspath(path)
    return ""


def find(env: Mapping[str, str], what: str) -> str:
    path = which("criu", env)
    if not path:
        minimum = ".".join(map(str, MINIMUM))
        why = "criu is not in PATH"
        raise FailedPrecondition("criu-missing", what, why, f"install criu {minimum} or later; {_WHERE}")
    return path


def parse_version(output: str) -> tuple[str, tuple[int, ...]]:
    """The version in the output of `criu --version`, as text and as numbers; ("", ()) for none."""
    for line in output.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "Version":
            text = value.strip()
            numbers = []
            for part in text.split("."):
                digits = part[: len(part) - len(part.lstrip("0123456789"))]
                if not digits:
                    break
                numbers.append(int(digits))
            return text, tuple(numbers)
    return "", ()


def check_version(output: str, path: str, what: str) -> str:
    """The version's text. Raises FailedPrecondition (code criu-too-old)."""
    text, numbers = parse_version(output)
    if numbers >= MINIMUM:
        return text
    minimum = ".".join(map(str, MINIMUM))
    why = f"{path} is version {text or 'unknown'}, needed is {minimum} or later"
    raise FailedPrecondition("criu-too-old", what, why, _WHERE)


def write_config(request: Request, directory: str, verb: str, *, env: Mapping[str, str]) -> None:
    """Write the container's CRIU configuration for `verb`: it is read anew each time.

    It begins with the file it stands in for (the user's, or runc's default). What it says wins over what
    runc asks for. An empty plug-in folder keeps a CUDA plug-in of the host from acting as well.
    """
    plugins = f"{directory}/criu-plugins"
    os.makedirs(plugins, mode=0o700, exist_ok=True)
    lines = [f"libdir {plugins}"]
    if lock := _network_lock(request.settings.network_lock, env):
        lines.append(f"network-lock {lock}")
    if verb == "checkpoint":
        lines.append(f"action-script {_commit_link(directory)}")
    else:
        lines.append("leave-stopped")
    text = _base(request) + "\n".join(lines) + "\n"
    write_atomic(f"{directory}/criu.conf", text.encode(), sync=False)


def _commit_link(directory: str) -> str:
    """The hook under a name that tells it everything: CRIU executes a path, without arguments.

    A word in quotes would be none: CRIU frees its memory before it uses it (4.2.1). A folder that is
    mounted noexec does not mind links.
    """
    link = f"{directory}/commit"
    hook = native.require("bin", "diapause-hook")
    if not os.path.islink(link) or os.readlink(link) != hook:
        if os.path.lexists(link):
            os.unlink(link)
        os.symlink(hook, link)
    return link


def _network_lock(setting: str, env: Mapping[str, str]) -> str:
    """ "" leaves CRIU's default, which runs iptables-restore and fails where there is none."""
    if setting != "auto":
        return setting
    return "" if which("iptables-restore", env) else "skip"


def _base(request: Request) -> str:
    path = request.state.get("criu_config") or ""
    if not path:
        return ""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().rstrip("\n") + "\n"
    except FileNotFoundError:
        return ""


def last_error(path: str) -> str:
    """The error in a CRIU log that says most, without its time stamp and place; "" if there is none.

    CRIU reports the cause first and then everything that failed because of it.
    """
    try:
        with open(path, "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _ERROR_TAIL))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    for line in lines:
        _, found, text = line.partition("Error (")
        message = text.partition("): ")[2].strip()
        if found and not message.startswith(_HARMLESS):
            return message
    return ""


def failed(what: str, log: str, saved: str, stderr: str) -> Internal:
    """Why runc failed: CRIU's reason, or its own. `saved` is where the copy of the log lies."""
    why = last_error(log)
    if why:
        return Internal("criu-failed", what, f"criu: {why}", "", log=saved)
    said = runc.message(stderr.strip().rpartition("\n")[2])
    return Internal("runc-failed", what, f"runc: {said or 'it gave no reason'}", "", log=saved)
