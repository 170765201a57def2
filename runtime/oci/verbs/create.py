"""`create` and `run`: edit the specification of a managed container, then become runc."""

from __future__ import annotations

from diapause.runtime.errors import FailedPrecondition
from diapause.runtime.oci import gpu, managed, report, stale, warm
from diapause.runtime.oci.spec import Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.oci.call import Call


def execute(call: Call) -> int:
    bundle = call.command.path("bundle", ".")
    if call.is_taken or not Spec.exists(bundle):
        call.become_runc()  # it has its own words about an id in use and a missing file
    spec = Spec.load(bundle)
    engine = gpu.engine(spec, lambda: call.config, call.runc)
    if not engine:
        call.become_runc()
    container = call.container
    try:
        state = managed.edit(spec, call, container, engine=engine)
    except FailedPrecondition as e:
        if e.code != "libcuda-foreign" or gpu.asked_by_name(spec):
            raise
        report.warning(call.command, f"create {container.id} as a container without a GPU: {e}")
        call.become_runc()
    managed.store(spec, call, container, state)
    warm.up(state, call.config)
    stale.sweep()
    call.become_runc()
