"""`restore`: the same edit as at create, from what the new specification asks for, then the engine.

The stock shim restores into a config.json that the client wrote anew, and never calls `create` for it. Of the
snapshot only the library's digest and the targets of its mounts count here.
"""

from __future__ import annotations

from diapause.runtime.errors import FailedPrecondition
from diapause.runtime.oci import above, gpu, managed, snapshot
from diapause.runtime.oci.spec import Spec
from diapause.runtime.oci.verbs import passthrough, requests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from diapause.runtime.oci.call import Call


def execute(call: Call) -> int:
    image = call.command.path("image-path", "checkpoint")
    has_manifest = snapshot.has_manifest(image)
    bundle = call.command.path("bundle", ".")
    if call.is_taken or not (has_manifest or Spec.exists(bundle)):
        call.become_runc()  # it has its own words about an id in use, a missing file or a wrong flag
    spec = Spec.load(bundle)
    if has_manifest:
        above.adopt_request(spec, call.runc)
    engine = gpu.engine(spec, lambda: call.config, call.runc)
    if not engine and not has_manifest:
        call.become_runc()
    if not engine and not gpu.requested(spec, call.runc):
        # Otherwise whoever supplies an image would get a GPU for a container that was given none.
        why = "the snapshot is of a container with a GPU, the new specification asks for none"
        todo = "restore with the same GPU request"
        raise FailedPrecondition("gpu-not-requested", f"restore {call.command.id}", why, todo)
    passthrough.recover(call)
    state = _prepare(call, spec, engine, image if has_manifest else "")
    from diapause.runtime.engine import api

    return api.restore(requests.restore(call, state, spec.bundle))


def _prepare(call: Call, spec: Spec, engine: str, image: str) -> dict[str, Any]:
    """Edit the bundle and write the state; what a failure leaves behind is removed."""
    container = call.container
    library = ""
    targets: list[str] = []
    if image:
        library, targets = snapshot.read(image)
        engine = "intercept" if library else "driver"
    state = managed.edit(spec, call, container, engine=engine, wanted_library=library)
    if missing := sorted(set(targets) - set(state["targets"])):
        why = f"the snapshot has a libcuda at {missing[0]}, the new specification has none there"
        todo = "restore with the same GPU request"
        raise FailedPrecondition("libcuda-target-missing", f"restore {container.id}", why, todo)
    managed.store(spec, call, container, state)
    return state
