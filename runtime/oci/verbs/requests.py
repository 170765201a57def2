"""A parsed call as the engine's request."""

from __future__ import annotations

from diapause.runtime.engine.request import (
    CheckpointRequest,
    Request,
    RestoreRequest,
    Settings,
    SuspendRequest,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from diapause.runtime.oci.call import Call


def checkpoint(call: Call, state: dict[str, Any]) -> CheckpointRequest:
    return CheckpointRequest(
        **_common(call, state),
        leave_running=call.command.switch("leave-running"),
    )


def restore(call: Call, state: dict[str, Any], bundle: str) -> RestoreRequest:
    return RestoreRequest(
        **_common(call, state),
        bundle=bundle,
        detach=call.command.switch("detach"),
        pid_file=call.command.path("pid-file"),
    )


def suspend(call: Call, state: dict[str, Any]) -> SuspendRequest:
    return SuspendRequest(**_common(call, state), light=call.command.switch("light"))


def resume(call: Call, state: dict[str, Any]) -> Request:
    return Request(**_common(call, state))


def _common(call: Call, state: dict[str, Any]) -> dict[str, Any]:
    command = call.command
    return {
        "runc": call.runc,
        "global_args": command.global_args,
        "verb_args": command.verb_args,
        "root": command.root,
        "id": command.id,
        "image_path": command.path("image-path", "checkpoint"),
        "work_path": command.path("work-path"),
        "settings": _settings(call, state),
        "state": state,
        "log": command.log,
        "log_format": command.log_format,
        "tcp_established": command.switch("tcp-established"),
        "file_locks": command.switch("file-locks"),
        "ext_unix_sk": command.switch("ext-unix-sk"),
        "shell_job": command.switch("shell-job"),
    }


def _settings(call: Call, state: dict[str, Any]) -> Settings:
    config = call.config
    return Settings(
        criu_path=config.criu_path,
        network_lock=config.criu_network_lock,
        libcuda=config.driver_libcuda,
        lock_timeout=config.driver_lock_timeout,
        checkpoint_timeout=config.driver_checkpoint_timeout,
        restore_timeout=config.driver_restore_timeout,
        fsync=config.snapshot_fsync,
        placement=state.get("placement") or config.snapshot_placement,
        embed_limit=config.snapshot_embed_limit,
        store_dir=config.snapshot_store_dir,
        memory_dir=config.snapshot_memory_dir,
        store_limit=config.snapshot_store_limit,
        log_level=config.log_level,
    )
