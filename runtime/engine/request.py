"""What a verb hands to the engine: plain values, filled in by whoever triggers the operation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The part of the configuration that the engine reads, one field per key."""

    criu_path: str = ""  # [criu] path: directory or file to be found first, "" = as in PATH
    network_lock: str = "auto"  # [criu] network-lock: auto | skip | iptables | nftables
    libcuda: str = ""  # [driver] libcuda of this host, "" = the one that the state names
    lock_timeout: float = 30.0  # seconds, [driver] lock-timeout
    checkpoint_timeout: float = 600.0  # seconds, [driver] checkpoint-timeout
    restore_timeout: float = 600.0  # seconds, [driver] restore-timeout
    fsync: str = "auto"  # [snapshot] fsync: auto | always | never


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One verb of runc on one container."""

    runc: str  # absolute path of the low-level runtime
    global_args: Sequence[str]  # before the verb, verbatim
    verb_args: Sequence[str]  # after the verb, verbatim, the id included
    root: str  # absolute; runc's own default when --root is absent
    id: str
    image_path: str  # absolute
    work_path: str = ""  # absolute, "" = none was given: runc uses the image path
    settings: Settings = field(default_factory=Settings)
    state: Mapping[str, Any]  # state.json of the container
    log: str = ""  # file of --log, "" = none
    log_format: str = "text"  # text | json


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRequest(Request):
    """`checkpoint`. Verbs that only look (`--pre-dump`, `--page-server`) never get here."""

    leave_running: bool = False
    tcp_established: bool = False
    file_locks: bool = False
    ext_unix_sk: bool = False
    shell_job: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreRequest(Request):
    """`restore`. `bundle` holds the config.json that was edited already."""

    bundle: str  # absolute
    detach: bool = False
    pid_file: str = ""  # absolute, "" = none
    tcp_established: bool = False
    file_locks: bool = False
    ext_unix_sk: bool = False
    shell_job: bool = False
