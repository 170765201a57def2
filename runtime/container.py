"""What the host remembers of a managed container: key, directory, lock and state.json.

    /run/diapause/c/<key>/   0700; state.json  expected  journal  lock  runc  criu.conf  criu-plugins/  …

The key stands for runc's root and the id, so that two roots may use one id. `lock` is taken by every verb
that works and left alone by `poststop`. state.json is written by create, run and restore before runc
starts; the createRuntime hook adds pid and start_time.
"""

from __future__ import annotations

import os

from diapause.runtime import json, private, sha256
from diapause.runtime.errors import FailedPrecondition, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from diapause.runtime.linux.locks import Lock

STATE_VERSION = 1


def run_dir() -> str:
    """What must not outlive a boot."""
    return os.environ.get("DIAPAUSE_RUN_DIR") or "/run/diapause"


def state_dir() -> str:
    """What may: content-addressed copies, digests, saved logs."""
    return os.environ.get("DIAPAUSE_STATE_DIR") or "/var/lib/diapause"


def key(root: str, container_id: str) -> str:
    """32 hex digits of sha256(root NUL id)."""
    return sha256.hexdigest(os.fsencode(f"{root}\0{container_id}"))[:32]


class Container:
    """A container of one runc root."""

    __slots__ = ("directory", "id", "key", "root")

    def __init__(self, root: str, container_id: str) -> None:
        self.root = root
        self.id = container_id
        self.key = key(root, container_id)
        self.directory = f"{run_dir()}/c/{self.key}"

    @property
    def has_journal(self) -> bool:
        return os.path.exists(f"{self.directory}/journal")

    def make_directory(self) -> None:
        private.make(run_dir(), "c", self.key)

    def lock(self, *, wait: float = 5.0) -> Lock:
        """The container's lock; Unavailable if an operation holds it for longer than `wait` seconds."""
        from diapause.runtime.linux.locks import Lock

        if (lock := Lock.try_take(f"{self.directory}/lock")) is not None:
            return lock
        import time

        end = time.monotonic() + wait
        while time.monotonic() < end:
            time.sleep(0.02)
            if (lock := Lock.try_take(f"{self.directory}/lock")) is not None:
                return lock
        raise Unavailable(
            "container-busy",
            f"container {self.id}",
            "another operation holds it",
            "try again when it is done",
        )

    def load_state(self) -> dict[str, Any] | None:
        """state.json, None for a container that is not managed. Raises FailedPrecondition for a bad one."""
        path = f"{self.directory}/state.json"
        try:
            with open(path, encoding="utf-8") as file:
                state = json.loads(file.read())
        except FileNotFoundError:
            return None
        except ValueError as e:
            raise self._bad_state(path, str(e)) from None
        if not isinstance(state, dict) or state.get("version") != STATE_VERSION:
            raise self._bad_state(path, f"not version {STATE_VERSION}")
        if (state.get("root"), state.get("id")) != (self.root, self.id):
            raise self._bad_state(path, "it describes another container")
        return state

    def _bad_state(self, path: str, why: str) -> FailedPrecondition:
        todo = "delete the container and create it again"
        return FailedPrecondition("state-malformed", f"container {self.id}", f"{path}: {why}", todo)

    def store_state(self, state: dict[str, Any]) -> None:
        from diapause.runtime.linux.files import write_atomic

        write_atomic(f"{self.directory}/state.json", json.dumps(state).encode(), sync=False)  # tmpfs

    def forget(self) -> None:
        """Remove the directory, for a verb that failed before runc knew of the container."""
        from diapause.runtime.linux.files import remove_tree

        try:
            remove_tree(self.directory)
        except OSError:
            pass  # the next container of this name finds it, or the sweep
