"""`create` and `run`: edit the specification of a managed container, then become runc."""

from __future__ import annotations

from diapause.runtime.oci import gpu, managed, stale
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
    state = managed.edit(spec, call, container, engine=engine)
    managed.store(spec, container, state)
    stale.sweep()
    call.become_runc()
