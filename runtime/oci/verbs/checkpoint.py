"""`checkpoint`: a managed container goes to the engine, any other to runc as it came."""

from __future__ import annotations

from diapause.runtime.oci import driver
from diapause.runtime.oci.verbs import passthrough, requests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from diapause.runtime.oci.call import Call

# These dump or serve memory pages ahead of a checkpoint and leave the container as it is.
ONLY_LOOKS = ("pre-dump", "page-server")


def execute(call: Call) -> int:
    passthrough.recover(call)
    state = call.container.load_state()
    if state is None or not _describes(state) or any(flag in call.command.flags for flag in ONLY_LOOKS):
        call.become_runc()
    if not call.config.driver_libcuda:
        driver.verify(f"checkpoint {call.command.id}", state)
    from diapause.runtime.engine import api

    api.refuse_suspended(call.command.root, call.command.id, f"checkpoint {call.command.id}")
    return api.checkpoint(requests.checkpoint(call, state))


def _describes(state: dict[str, Any]) -> bool:
    """Whether it is the state of a container that runs: a create that failed may have left one behind, and an
    unmanaged container got its id since."""
    from diapause.runtime.linux import pid

    return state["pid"] is not None and pid.is_alive(state["pid"], state["start_time"])
