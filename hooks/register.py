"""createRuntime: record the container's init process, and verify what it is about to use.

It runs at create and again at restore, where the status is `stopped` and the pid that of the restored init.
It mounts nothing and writes nothing into the rootfs. What runc tells is compared with what the verb wrote:
a hook that somebody starts by hand, or for another bundle, is refused.
"""

from __future__ import annotations

import os

from diapause.hooks import told, verify
from diapause.runtime import json
from diapause.runtime.container import Container, run_dir
from diapause.runtime.errors import FailedPrecondition, Unavailable
from diapause.runtime.linux import pid
from diapause.runtime.oci import driver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

THROUGH_US = "start the container through diapause-runc"


def register(key: str, stdin: bytes) -> None:
    """Raises DiapauseError; runc then gives up the create or the restore."""
    runc = told.parse(stdin)
    container, state = _prepared(key)
    what = f"register {container.id}"
    _compare(what, runc, container, state)
    _check_owner(what, f"{runc.bundle}/config.json")
    start_time = _start_time(what, runc.pid)
    try:
        driver.verify(what, state)
        verify.library(what, state)
        verify.devices(what, state)
    except FailedPrecondition:
        _give_up(container)
        raise
    container.store_state({**state, "pid": runc.pid, "start_time": start_time})


def _give_up(container: Container) -> None:
    """The container will not come to be, and runc 1.1 runs no poststop then. A restore holds the lock."""
    try:
        with container.lock(wait=0):
            container.forget()
    except Unavailable:
        pass


def _prepared(key: str) -> tuple[Container, dict[str, Any]]:
    """The container of the key and the state that the verb wrote."""
    path = f"{run_dir()}/c/{key}/state.json"
    try:
        with open(path, encoding="utf-8") as file:
            names = json.loads(file.read())
        container = Container(names["root"], names["id"])
        state = container.load_state() if container.key == key else None
    except FileNotFoundError:
        raise FailedPrecondition("hook-not-prepared", told.HOOK, f"{path} is missing", THROUGH_US) from None
    except (ValueError, KeyError, TypeError):
        state = None
    if state is None:
        raise FailedPrecondition("state-malformed", told.HOOK, f"{path} is malformed", THROUGH_US)
    return container, state


def _compare(what: str, runc: told.Told, container: Container, state: dict[str, Any]) -> None:
    if runc.id != container.id:
        raise FailedPrecondition("hook-other-container", what, f"runc says {runc.id!r}", THROUGH_US)
    if os.path.realpath(runc.bundle) != os.path.realpath(state["bundle"]):
        why = f"the bundle is {runc.bundle}, prepared was {state['bundle']}"
        raise FailedPrecondition("hook-other-container", what, why, THROUGH_US)


def _check_owner(what: str, config: str) -> None:
    try:
        status = os.stat(config)
    except OSError as e:
        raise FailedPrecondition("hook-bundle-missing", what, f"{config}: {e.strerror}", THROUGH_US) from None
    if status.st_uid not in (0, os.geteuid()) or status.st_mode & 0o002:
        todo = "give the file to root and take the others' right to write"
        raise FailedPrecondition("hook-untrusted-bundle", what, f"others can write {config}", todo)


def _start_time(what: str, number: int) -> int:
    try:
        return pid.start_time(number)
    except OSError:
        raise FailedPrecondition("hook-no-process", what, f"no process {number}", told.BY_HAND) from None
