"""Every other verb: undo what a dead engine left behind in this container, then become runc."""

from __future__ import annotations

import os

from diapause.runtime.errors import DiapauseError, Unavailable
from diapause.runtime.oci import report, stale

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.oci.call import Call

RUNS_THE_CONTAINER = ("resume", "start", "exec")  # a process whose GPU is not back must not run
RESTORE = 120.0  # seconds that `delete` waits for a restore whose client is gone


def execute(call: Call) -> int:
    recover(call)
    if call.command.verb == "delete" and os.path.exists(f"{call.container.directory}/suspended"):
        _discard_suspended(call)
    stale.sweep()
    call.become_runc()


def _discard_suspended(call: Call) -> None:
    """What runc is about to delete, and does not refuse to, needs no GPU memory any more."""
    from diapause.runtime.engine import api
    from diapause.runtime.linux import pid

    container = call.container
    state = container.load_state()
    forced = call.command.switch("force") or call.command.switch("format")  # what -f is for other verbs
    if forced or state is None or not pid.is_alive(state["pid"], state["start_time"]):
        api.discard_suspended(container.root, container.id)


def recover(call: Call) -> None:
    """Replay the container's journal, if it has one and no living engine works on it."""
    container = call.container
    if not container.has_journal:
        return
    from diapause.runtime.engine import api

    deletes = call.command.verb == "delete"
    try:
        api.recover(container.root, container.id)
    except Unavailable:
        # An engine is at work: runc decides what its verb does meanwhile.
        if deletes and api.is_restoring(container.root, container.id):
            _await_engine(call)
            recover(call)
    except (DiapauseError, OSError) as e:
        if call.command.verb in RUNS_THE_CONTAINER:
            raise
        if deletes and api.is_halfway(container.root, container.id):
            raise
        report.warning(call.command, report.describe(f"recover {container.id}", e))


def _await_engine(call: Call) -> None:
    """runc would delete through the mounts that a restore has for a while. Raises Unavailable."""
    try:
        call.container.lock(wait=RESTORE).close()
    except FileNotFoundError:  # it has ended, and left nothing
        pass
