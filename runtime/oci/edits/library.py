"""Our library in front of every libcuda, and the real file at a path that our library knows."""

from __future__ import annotations

import os

from diapause.runtime.errors import FailedPrecondition
from diapause.runtime.oci import gpu

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from diapause.runtime.oci.spec import Spec

REAL = "/.diapause/libcuda.so.1"  # at the root: works with a read-only or bind-mounted /usr
OPTIONS = ["bind", "ro", "nosuid", "nodev"]


def real_libcuda(spec: Spec) -> str:
    """The host's libcuda that the container is to have, links resolved; "" if it is given none."""
    if (private := spec.mount_at(REAL)) is not None:
        return os.path.realpath(str(private["source"]))
    files = {os.path.realpath(mount["source"]) for mount in targets(spec)}
    if len(files) > 1:
        why = f"the specification mounts different ones: {' and '.join(sorted(files))}"
        raise FailedPrecondition("libcuda-ambiguous", "libcuda", why, "ask for the GPUs of one driver")
    return files.pop() if files else ""


def targets(spec: Spec) -> list[dict[str, Any]]:
    """The mounts of a 64-bit libcuda."""
    return [mount for mount in gpu.cuda_mounts(spec) if _is_64_bit(mount.get("source") or "")]


def insert(spec: Spec, library: str) -> None:
    """Pure but for `spec`; inserting again, also another version of the library, changes the source only."""
    real = real_libcuda(spec)
    for mount in targets(spec):
        mount.update(source=library, type="bind", options=list(OPTIONS))
    private = {"destination": REAL, "type": "bind", "source": real, "options": list(OPTIONS)}
    if (present := spec.mount_at(REAL)) is not None:
        present.update(private)
    else:
        spec.mounts.append(private)


def _is_64_bit(path: str) -> bool:
    """By the ELF header; a file that cannot be read counts, so that its absence is reported by name.

    Without waiting: it may be a FIFO that somebody put there.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as file:
            header = file.read(5)
    except OSError:
        return True
    return not (header or b"").startswith(b"\x7fELF\x01")
