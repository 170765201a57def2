"""The Python half of diapause-runc, started by its C front in place: same pid, descriptors, environment."""

from __future__ import annotations

import sys

from diapause.runtime.oci import args, report
from diapause.runtime.oci.call import Call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(runc: str = "", argv: Sequence[str] = (), *, front: str = "") -> int:
    """Carry out a verb; `runc` is the low-level runtime that the front found. Returns the exit status."""
    if not runc:
        report.print_line("diapause-oci: it is started by diapause-runc, not by hand [not-by-hand]")
        return 1
    command = args.parse(argv)
    call = Call(command, runc=runc, front=front or sys.argv[2])
    try:
        return _verb(call)
    except KeyboardInterrupt:
        return 130
    except Exception as e:
        return report.failure(command, e)


def _verb(call: Call) -> int:
    verb = call.command.verb
    if call.command.is_for_runc_alone:
        call.become_runc()
    if verb in ("create", "run"):
        from diapause.runtime.oci.verbs import create

        return create.execute(call)
    if verb == "restore":
        from diapause.runtime.oci.verbs import restore

        return restore.execute(call)
    if verb == "checkpoint":
        from diapause.runtime.oci.verbs import checkpoint

        return checkpoint.execute(call)
    if verb == "suspend":
        from diapause.runtime.oci.verbs import suspend

        return suspend.execute(call)
    if verb == "resume":
        from diapause.runtime.oci.verbs import resume

        return resume.execute(call)
    from diapause.runtime.oci.verbs import passthrough

    return passthrough.execute(call)
