"""CRIU reads a file of ours for this container: the engine writes into it what a dump or restore needs.

The file takes the place of the one the user named by `org.criu.config`, or of runc's default, so the engine
starts from that one's contents: `base` tells which. An empty annotation means none, as it does to runc.
"""

from __future__ import annotations

from diapause.runtime.container import run_dir
from diapause.runtime.oci.annotations import CRIU_CONFIG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.oci.spec import Spec

RUNC_DEFAULT = "/etc/criu/runc.conf"
BASE = "diapause.dev/criu-config"  # where the user's own value is kept


def point(spec: Spec, directory: str) -> str:
    """Point runc to the file in the container's directory; returns the file that it replaces, "" for none."""
    annotations = spec.annotations
    value = annotations.get(CRIU_CONFIG)
    if value is None or not value.startswith(f"{run_dir()}/c/"):
        # Not edited yet, so a BASE that is there is not ours. An engine that lets users set diapause.dev/…
        # would let them name a file with an `action-script`, which CRIU runs as root.
        annotations.pop(BASE, None)
        if value is not None:
            annotations[BASE] = value
    annotations[CRIU_CONFIG] = f"{directory}/criu.conf"
    return annotations.get(BASE, RUNC_DEFAULT)
