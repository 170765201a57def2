"""A CDI specification of the software GPU: two libraries and a character device that CRIU refuses to dump.

Like a real GPU's, its device makes a checkpoint fail unless the GPU's state was evacuated before. The
libraries are content-addressed copies, so that a newer package changes no container that runs.
"""

from __future__ import annotations

import os
import stat

from diapause.runtime import native, private, sha256
from diapause.runtime.container import state_dir
from diapause.runtime.errors import FailedPrecondition
from diapause.runtime.oci import digest
from diapause.runtime.oci.cdi.specs import SOFTWARE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

CDI_VERSION = "0.5.0"  # the first with hostPath of device nodes; podman 4.3 reads no newer one
CONTAINER_NODE = "/dev/diapause-gpu0"
# Real devices whose open file CRIU cannot dump; the first that opens stands in for a GPU.
HOST_NODES = ("/dev/fuse", "/dev/loop-control", "/dev/vhost-net", "/dev/kvm", "/dev/hpet")
LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1")
UNVERSIONED = "libcuda.so"  # some programs load it by this name
OPTIONS = ["ro", "nosuid", "nodev", "bind"]


def generate(nodes: Sequence[str] = HOST_NODES) -> dict[str, Any]:
    """Raises FailedPrecondition if the package lacks the libraries or the host every device."""
    directory = publish()
    edits = {"deviceNodes": [_node(nodes)], "mounts": _mounts(directory)}
    return {
        "cdiVersion": CDI_VERSION,
        "kind": SOFTWARE,
        "devices": [{"name": name, "containerEdits": edits} for name in ("0", "all")],
    }


def publish() -> str:
    """The directory of the installed libraries' copies, made if it is not there yet."""
    from diapause.runtime.linux.files import write_atomic

    contents = {}
    for name in LIBRARIES:
        with open(native.require("softgpu", name), "rb") as file:
            contents[name] = file.read()
    address = _address(sha256.hexdigest(data) for data in contents.values())
    directory = private.make(state_dir(), "softgpu", address)
    for name, data in contents.items():
        if not os.path.exists(f"{directory}/{name}"):
            write_atomic(f"{directory}/{name}", data, mode=0o555)
    return directory


def verify(directory: str) -> None:
    """That the copies there are what they were, for they lie in many containers.

    Raises FailedPrecondition (code softgpu-changed).
    """
    try:
        digests = [digest.of_file(f"{directory}/{name}").digest for name in LIBRARIES]
    except OSError as e:
        why = f"{e.filename}: {e.strerror}"
    else:
        if _address(found.removeprefix("sha256:") for found in digests) == os.path.basename(directory):
            return
        why = f"a library in {directory} has changed"
    todo = "remove the directory and run `diapause cdi generate --software` again"
    raise FailedPrecondition("softgpu-changed", "software GPU", why, todo)


def _address(digests: Iterable[str]) -> str:
    return sha256.hexdigest(bytes.fromhex("".join(digests)))


def _node(nodes: Sequence[str]) -> dict[str, Any]:
    for path in nodes:
        try:
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            continue
        try:
            status = os.fstat(fd)
        finally:
            os.close(fd)
        if stat.S_ISCHR(status.st_mode):
            number = status.st_rdev
            return {
                "path": CONTAINER_NODE, "hostPath": path, "type": "c", "major": os.major(number),
                "minor": os.minor(number), "fileMode": 0o666,
            }  # fmt: skip
    why = f"none of {', '.join(nodes)} opens"
    raise FailedPrecondition("softgpu-no-device", "cdi generate", why, "load a module: `modprobe fuse`")


def _mounts(directory: str) -> list[dict[str, Any]]:
    """Where Debian-like and where RHEL-like images look."""
    names = {**{name: name for name in LIBRARIES}, UNVERSIONED: LIBRARIES[0]}
    return [
        {"hostPath": f"{directory}/{file}", "containerPath": f"{target}/{name}", "options": list(OPTIONS)}
        for target in (f"/usr/lib/{os.uname().machine}-linux-gnu", "/usr/lib64")
        for name, file in names.items()
    ]
