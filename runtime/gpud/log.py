"""The controller's log: a JSON object a line on stderr. Never contents of memory, never whole messages."""

from __future__ import annotations

import sys
import time

from diapause.runtime import json


def write(level: str, message: str, **fields: object) -> None:
    """`level` is info, warning or error; units belong into the names of fields."""
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    try:
        sys.stderr.write(json.dumps({"time": when, "level": level, "msg": message, **fields}) + "\n")
        sys.stderr.flush()
    except OSError:
        pass  # a full disk is no reason to stop
