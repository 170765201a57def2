"""The engine's entry points, one per operation; each is imported by the verb that needs it."""

from diapause.runtime.engine.request import CheckpointRequest, Request, RestoreRequest, SuspendRequest


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


def suspend(request: SuspendRequest) -> int:
    """Free the GPU of a container that stays, frozen; raises as `checkpoint` does."""
    from diapause.runtime.engine.suspend import run

    return run(request)


def resume(request: Request) -> int:
    """Bring a suspended container back; when that fails it stays suspended."""
    from diapause.runtime.engine.resume import run

    return run(request)


def is_suspended(root: str, container_id: str) -> bool:
    from diapause.runtime.container import Container
    from diapause.runtime.engine import suspended

    return suspended.exists(Container(root, container_id))


def refuse_suspended(root: str, container_id: str, what: str) -> None:
    """Raises FailedPrecondition (container-suspended) for a container that is."""
    from diapause.runtime.container import Container
    from diapause.runtime.engine import suspended

    suspended.refuse(Container(root, container_id), what)


def discard_suspended(root: str, container_id: str) -> None:
    """The container is about to be deleted: nobody needs its memory."""
    from diapause.runtime.container import Container
    from diapause.runtime.engine import reclaim, suspended

    if facts := suspended.read(Container(root, container_id)):
        reclaim.discard(facts)


def recover(root: str, container_id: str) -> None:
    """Undo what a dead engine left behind; does nothing while a living one holds the container."""
    from diapause.runtime.engine.recover import run

    run(root, container_id)


def is_restoring(root: str, container_id: str) -> bool:
    """Of a container that an engine is at work on: whether that is a restore, and runc is not done yet."""
    from diapause.runtime.engine import halfway, runc

    return not runc.exists(root, container_id) or bool(halfway.mounted(root, container_id))


def is_halfway(root: str, container_id: str) -> bool:
    """Whether `runc delete` would delete files that are not its own, because a restore was cut off."""
    from diapause.runtime.engine import halfway

    return bool(halfway.mounted(root, container_id))
