"""What a verb hands to the engine: plain values, filled in by whoever triggers the operation.

No dataclasses: their import costs as much as all other modules of the engine together, on every verb.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


class Settings:
    """The part of the configuration that the engine reads, one field per key."""

    __slots__ = (
        "checkpoint_timeout", "criu_path", "embed_limit", "fsync", "libcuda", "lock_timeout", "log_level",
        "memory_dir", "network_lock", "placement", "restore_timeout", "store_dir", "store_limit",
    )  # fmt: skip

    def __init__(
        self,
        *,
        criu_path: str = "",
        network_lock: str = "auto",
        libcuda: str = "",
        lock_timeout: float = 30.0,
        checkpoint_timeout: float = 600.0,
        restore_timeout: float = 600.0,
        fsync: str = "auto",
        placement: str = "auto",
        embed_limit: int = 256 << 20,
        store_dir: str = "",
        memory_dir: str = "",
        store_limit: int = 0,
        log_level: str = "info",
    ) -> None:
        self.criu_path = criu_path  # [criu] path: directory or file to be found first, "" = as in PATH
        self.network_lock = network_lock  # [criu] network-lock: auto | skip | iptables | nftables
        self.libcuda = libcuda  # [driver] libcuda of this host, "" = the one that the state names
        self.lock_timeout = lock_timeout  # seconds, [driver] lock-timeout
        self.checkpoint_timeout = checkpoint_timeout  # seconds, [driver] checkpoint-timeout
        self.restore_timeout = restore_timeout  # seconds, [driver] restore-timeout
        self.fsync = fsync  # [snapshot] fsync: auto | always | never
        self.placement = placement  # annotation or [snapshot] placement: auto | embedded | local
        self.embed_limit = embed_limit  # bytes of GPU memory, [snapshot] embed-limit
        self.store_dir = store_dir  # [snapshot] store-dir, "" = the default one
        self.memory_dir = memory_dir  # [snapshot] memory-dir, "" = none
        self.store_limit = store_limit  # bytes, [snapshot] store-limit, 0 = none
        self.log_level = log_level  # [log] level: info | warning


class Request:
    """One verb of runc on one container."""

    __slots__ = (
        "ext_unix_sk", "file_locks", "global_args", "id", "image_path", "log", "log_format", "root", "runc",
        "settings", "shell_job", "state", "tcp_established", "verb_args", "work_path",
    )  # fmt: skip

    def __init__(
        self,
        *,
        runc: str,
        global_args: Sequence[str],
        verb_args: Sequence[str],
        root: str,
        id: str,
        image_path: str,
        work_path: str = "",
        settings: Settings | None = None,
        state: Mapping[str, Any],
        log: str = "",
        log_format: str = "text",
        tcp_established: bool = False,
        file_locks: bool = False,
        ext_unix_sk: bool = False,
        shell_job: bool = False,
    ) -> None:
        self.runc = runc  # absolute path of the low-level runtime
        self.global_args = global_args  # before the verb, verbatim
        self.verb_args = verb_args  # after the verb, verbatim, the id included
        self.root = root  # absolute; runc's own default when --root is absent
        self.id = id
        self.image_path = image_path  # absolute
        self.work_path = work_path  # absolute, "" = none was given: runc uses the image path
        self.settings = settings or Settings()
        self.state = state  # state.json of the container
        self.log = log  # file of --log, "" = none
        self.log_format = log_format  # text | json
        self.tcp_established = tcp_established
        self.file_locks = file_locks
        self.ext_unix_sk = ext_unix_sk
        self.shell_job = shell_job


class CheckpointRequest(Request):
    """`checkpoint`. Verbs that only look (`--pre-dump`, `--page-server`) never get here."""

    __slots__ = ("leave_running",)

    def __init__(self, *, leave_running: bool = False, **common: Any) -> None:
        super().__init__(**common)
        self.leave_running = leave_running


class SuspendRequest(Request):
    """`suspend`, of Diapause alone; `image_path` means nothing."""

    __slots__ = ("light",)

    def __init__(self, *, light: bool = False, **common: Any) -> None:
        super().__init__(**common)
        self.light = light  # the driver keeps its part on the GPU


class RestoreRequest(Request):
    """`restore`. `bundle` holds the config.json that was edited already."""

    __slots__ = ("bundle", "detach", "pid_file")

    def __init__(self, *, bundle: str, detach: bool = False, pid_file: str = "", **common: Any) -> None:
        super().__init__(**common)
        self.bundle = bundle  # absolute
        self.detach = detach
        self.pid_file = pid_file  # absolute, "" = none
