"""`resume`: a suspended container gets its GPU memory back; any other one is runc's to thaw."""

from __future__ import annotations

from diapause.runtime.oci.verbs import passthrough, requests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.oci.call import Call


def execute(call: Call) -> int:
    from diapause.runtime.engine import api

    container = call.container
    state = container.load_state()
    if state is None or not api.is_suspended(container.root, container.id):
        return passthrough.execute(call)
    return api.resume(requests.resume(call, state))
