"""`suspend [--light] ID`: a verb of ours; runc has none of that name."""

from __future__ import annotations

from diapause.runtime.errors import FailedPrecondition
from diapause.runtime.oci import driver
from diapause.runtime.oci.verbs import passthrough, requests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.oci.call import Call


def execute(call: Call) -> int:
    passthrough.recover(call)
    state = call.container.load_state()
    if state is None:
        why, todo = "the container is not managed by Diapause", "pause it instead"
        raise FailedPrecondition("container-unmanaged", f"suspend {call.command.id}", why, todo)
    if not call.config.driver_libcuda:
        driver.verify(f"suspend {call.command.id}", state)
    from diapause.runtime.engine import api

    return api.suspend(requests.suspend(call, state))
