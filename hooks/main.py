"""`diapause-hook register --key KEY`, started by runc through the C front of diapause-hook."""

from __future__ import annotations

import sys

from diapause.hooks import register
from diapause.hooks.told import BY_HAND, HOOK
from diapause.runtime.errors import InvalidArgument
from diapause.runtime.oci import report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

LIMIT = 1 << 20  # bytes of the state that runc writes; it has some hundred


def main(_: str, argv: Sequence[str]) -> int:
    """The hook's exit status; runc shows the first line of stderr when it is not 0."""
    try:
        if list(argv[:2]) != ["register", "--key"] or len(argv) != 3:
            raise InvalidArgument("hook-usage", HOOK, f"unknown arguments {list(argv)}", BY_HAND)
        register.register(argv[2], sys.stdin.buffer.read(LIMIT))
    except Exception as e:
        report.print_line(report.describe(HOOK, e))
        return 1
    return 0
