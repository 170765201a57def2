"""The engine's entry points, one per operation; each is imported by the verb that needs it."""

from diapause.runtime.engine.request import CheckpointRequest, RestoreRequest


def checkpoint(request: CheckpointRequest) -> int:
    """Checkpoint a managed container and return runc's exit status.

    Raises FailedPrecondition for a refusal (nothing was touched), Unavailable while another
    operation holds the container, Internal when the operation failed and was undone.
    """
    from diapause.runtime.engine.checkpoint import run

    return run(request)


def restore(request: RestoreRequest) -> int:
    """Restore a managed container and return runc's exit status.

    Without `--detach` it returns when the container has exited, with its status. Raises as
    `checkpoint` does; after a failure nothing of the container is left.
    """
    from diapause.runtime.engine.restore import run

    return run(request)


def recover(root: str, container_id: str) -> None:
    """Undo what a dead engine left behind; does nothing while a living one holds the container."""
    from diapause.runtime.engine.recover import run

    run(root, container_id)
